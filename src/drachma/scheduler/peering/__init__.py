"""Several schedulers at once: their membership, their responsibility for pods, and their announcements."""
