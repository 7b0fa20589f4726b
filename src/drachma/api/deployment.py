"""Deployment: pods of one template, replaced step by step when the template changes. A partial view."""

from drachma.api import meta
from drachma.api.struct import Int32, Struct


class DeploymentSpec(Struct, frozen=True, kw_only=True):
    """How many pods."""

    replicas: Int32 | None = None


class Deployment(meta.Object, frozen=True, kw_only=True):
    """``apps`` Deployment, namespaced; a partial view."""

    spec: DeploymentSpec = DeploymentSpec()
