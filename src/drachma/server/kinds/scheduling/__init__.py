"""``scheduling.k8s.io``: priorities."""
