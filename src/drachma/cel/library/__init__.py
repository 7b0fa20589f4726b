"""Declarations of the libraries in Kubernetes' CEL environment, one module a library, as tables of overloads.

Facts of upstream, written down: names, overload ids, signatures, and their order. ``environment.py`` puts them
together.
"""
