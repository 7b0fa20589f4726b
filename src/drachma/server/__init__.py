"""The Kubernetes REST wire: one module a concern."""
