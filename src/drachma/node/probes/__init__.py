"""Probes and lifecycle hooks of containers."""
