"""What passes between a node agent and its drivers, and what both leave for the container runtime."""
