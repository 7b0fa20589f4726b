"""``apps``: what keeps pods running."""
