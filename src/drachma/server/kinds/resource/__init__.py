"""Kinds of ``resource.k8s.io``: devices and claims."""
