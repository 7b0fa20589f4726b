"""Simulated machines, drivers and containers."""
