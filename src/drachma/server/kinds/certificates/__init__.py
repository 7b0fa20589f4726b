"""``certificates.k8s.io``: requests for certificates."""
