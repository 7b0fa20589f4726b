"""ReplicaSet: so many pods of one template. A partial view."""

from drachma.api import meta
from drachma.api.struct import Int32, Struct


class ReplicaSetSpec(Struct, frozen=True, kw_only=True):
    """How many pods."""

    replicas: Int32 | None = None


class ReplicaSet(meta.Object, frozen=True, kw_only=True):
    """``apps`` ReplicaSet, namespaced; a partial view."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
