"""Deployment: the Kubernetes objects that run drachma's components on a cluster, as documents. Pure."""

from drachma.deployment.components import Component
from drachma.deployment.manifests import Settings, documents

__all__ = ["Component", "Settings", "documents"]
