"""The listener of all ports."""
