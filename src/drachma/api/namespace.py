"""Namespace: labels, finalizers and phase. A partial view."""

from drachma.api import meta
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, Struct


class NamespaceSpec(Struct, frozen=True, kw_only=True):
    """Finalizers of the namespace."""

    finalizers: tuple[str, ...] = ABSENT_TUPLE


class NamespaceStatus(Struct, frozen=True, kw_only=True):
    """Phase of the namespace: Active or Terminating."""

    phase: str = ABSENT_TEXT


class Namespace(meta.Object, frozen=True, kw_only=True):
    """Core Namespace, cluster-scoped; a partial view."""

    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()
