"""Rules for drivers, by subject; each module has ``CHECKS`` in the order in which they are tried."""
