"""Objects that placing pods depends on, as a value. An autoscaler may keep and change it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from drachma.api import gates, meta, resourceclaimtemplate
from drachma.claims import identity
from drachma.scheduler.snapshot import kinds

ObjectT = TypeVar("ObjectT", bound=meta.Object)

KINDS: Final[tuple[type[meta.Object], ...]] = (
    resourceclaimtemplate.ResourceClaimTemplate,
    *(row.kind for row in kinds.TABLE),
)
"""Kinds that placing pods depends on, in the order in which a simulation adds them: the kinds of snapshots, and
templates, from which a simulation creates claims itself."""


class ClusterState(msgspec.Struct, frozen=True):
    """Objects of these kinds. Objects without a uid get one made of their names."""

    objects: tuple[meta.Object, ...] = ()

    @classmethod
    def of(cls, objects: Iterable[meta.Object]) -> ClusterState:
        """Return the state of all objects of these kinds. Other kinds are ignored."""
        return cls(tuple(_ensure_uid(each) for each in objects if isinstance(each, KINDS)))

    def plus(self, objects: Iterable[meta.Object]) -> ClusterState:
        """Return the cluster with more objects."""
        return ClusterState((*self.objects, *ClusterState.of(objects).objects))

    def all(self, kind: type[ObjectT]) -> list[ObjectT]:
        """Return the objects of a kind, in their order."""
        return [each for each in self.objects if isinstance(each, kind)]


def _ensure_uid(original: meta.Object) -> meta.Object:
    metadata = original.metadata
    if metadata.uid:
        return original
    uid = f"{type(original).__name__}/{identity.label(metadata)}"
    return msgspec.structs.replace(original, metadata=msgspec.structs.replace(metadata, uid=uid))


def served_kinds(enabled: gates.Gates) -> tuple[type[meta.Object], ...]:
    """Return the kinds that a server with these features has."""
    return (resourceclaimtemplate.ResourceClaimTemplate, *(row.kind for row in kinds.served_rows(enabled)))
