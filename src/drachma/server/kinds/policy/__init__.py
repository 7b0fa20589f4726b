"""``policy``: what may be done to pods that run."""
