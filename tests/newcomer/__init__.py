"""The README as a new user follows it, in a clean folder: ``python -m tests.newcomer`` prints the times."""
