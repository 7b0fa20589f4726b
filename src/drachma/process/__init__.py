"""Composition: how components become a process: hosting, the embedded control plane, a component on its own."""
