"""``node.k8s.io``: classes of container runtimes."""
