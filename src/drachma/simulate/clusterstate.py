"""The objects that placing pods depends on, as plain state. An autoscaler may keep it and change it as it likes."""

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
"""Kinds that decide where pods go, in the order in which a simulation takes them in: those of snapshots, and templates,
from which a simulation makes claims itself."""


class ClusterState(msgspec.Struct, frozen=True):
    """Objects of the kinds that matter. Objects that no server has given a uid get one made of their names."""

    objects: tuple[meta.Object, ...] = ()

    @classmethod
    def of(cls, objects: Iterable[meta.Object]) -> ClusterState:
        """All objects of the kinds that matter; others are passed over."""
        return cls(tuple(_identified(each) for each in objects if isinstance(each, KINDS)))

    def plus(self, objects: Iterable[meta.Object]) -> ClusterState:
        """The same cluster with more in it."""
        return ClusterState((*self.objects, *ClusterState.of(objects).objects))

    def all(self, kind: type[ObjectT]) -> list[ObjectT]:
        """The objects of a kind, in their order."""
        return [each for each in self.objects if isinstance(each, kind)]


def _identified(given: meta.Object) -> meta.Object:
    metadata = given.metadata
    if metadata.uid:
        return given
    uid = f"{type(given).__name__}/{identity.label(metadata)}"
    return msgspec.structs.replace(given, metadata=msgspec.structs.replace(metadata, uid=uid))


def followed(enabled: gates.Gates) -> tuple[type[meta.Object], ...]:
    """Return the kinds that a server with these features has."""
    return (resourceclaimtemplate.ResourceClaimTemplate, *(row.kind for row in kinds.followed(enabled)))
