"""``batch``: what runs pods to their end."""
