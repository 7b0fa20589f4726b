"""Kueue's configuration and the queueing policy: forms, rules, gates."""
