"""What Kueue's webhooks complete and refuse."""
