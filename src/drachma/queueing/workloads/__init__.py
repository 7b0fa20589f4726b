"""Workloads: their requests, their status, and the transitions of it."""
