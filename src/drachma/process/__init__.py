"""Composition of components into processes: the API server, the embedded control plane, a single component."""
