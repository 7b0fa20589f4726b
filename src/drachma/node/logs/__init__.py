"""Logs of containers: stored in files or in memory, and read by selection."""
