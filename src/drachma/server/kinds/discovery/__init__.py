"""``discovery.k8s.io``: where services are reached."""
