"""Authorisers: roles, and relations between nodes and objects."""
