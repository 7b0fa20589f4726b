"""``resource.k8s.io``: devices, and the claims to them."""
