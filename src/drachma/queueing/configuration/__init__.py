"""Kueue's configuration and what stands beside it: forms, rules, gates."""
