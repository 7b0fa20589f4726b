"""``storage.k8s.io``: classes of storage and what storage drivers say."""
