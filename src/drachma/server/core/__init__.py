"""The kinds outside ``resource.k8s.io``: kept as the documents they are, with the defaults that components rely on."""

from drachma.server.core.catalog import strategies

__all__ = ["strategies"]
