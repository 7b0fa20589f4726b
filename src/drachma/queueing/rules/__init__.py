"""Defaults and validation of Kueue's webhooks."""
