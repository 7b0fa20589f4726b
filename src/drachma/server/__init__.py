"""The Kubernetes API server."""
