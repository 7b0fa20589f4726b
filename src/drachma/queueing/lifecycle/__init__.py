"""What is due for a workload next, outside the cycles of admission."""
