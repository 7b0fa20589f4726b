"""Kinds that register admission: policies, their bindings, and webhooks."""
