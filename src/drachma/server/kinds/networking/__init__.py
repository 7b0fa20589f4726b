"""``networking.k8s.io``: who may talk to whom."""
