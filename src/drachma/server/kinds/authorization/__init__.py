"""``authorization.k8s.io``: questions about what somebody may do."""
