"""Kinds of authentication.k8s.io: questions about who somebody is."""
