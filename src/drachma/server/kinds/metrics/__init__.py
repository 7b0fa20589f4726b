"""``metrics.k8s.io``: what nodes and pods use."""
