"""Kinds of apiextensions.k8s.io, and the kinds that are made of them."""
