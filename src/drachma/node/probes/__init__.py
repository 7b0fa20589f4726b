"""Questions to containers, whether they have begun, are ready, and still live, and what the answers mean."""
