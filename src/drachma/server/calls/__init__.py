"""Calls: requests independent of their transport, with user, verb, target and options."""
