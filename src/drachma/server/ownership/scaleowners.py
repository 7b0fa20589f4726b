"""Ownership of the number of replicas, in terms of a scale and of its workload.

A scale and its owners are not stored: they are in the ``managedFields`` of the workload. For an apply to the scale,
:func:`to_scale` converts the entries to those of a scale, and :func:`to_workload` converts the result back. Both follow
upstream exactly: an owner through a scale has no time, and an updater of the workload that still owns the number gets a
second entry.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from drachma.server.ownership import fieldset, managedfields
from drachma.server.ownership.managers import Document, Owned, Owners

Places: TypeAlias = Mapping[str, tuple[str, ...] | None]
"""Path of the number of replicas in each version of a workload, by apiVersion; None for a version without a scale."""

_IN_SCALE: Final = ("f:spec", "f:replicas")


def to_scale(entries: Sequence[Document], places: Places, *, api_version: str) -> list[Document]:
    """Return the entries of a scale: those of the workload that own the number of replicas, in the scale's version."""
    fields = fieldset.make_set([_IN_SCALE])
    return managedfields.encode(
        {
            manager: Owned(fields, api_version, owned.time)
            for manager, owned in managedfields.decode(entries).items()
            if _has(owned.fields, _path(places.get(owned.api_version)))
        }
    )


def to_workload(
    entries: Sequence[Document], scaled: Sequence[Document], places: Places, *, api_version: str
) -> list[Document]:
    """Return the entries of a workload after an apply to its scale that resulted in ``scaled``."""
    before, by_scale = managedfields.decode(entries), managedfields.decode(scaled)
    owners: Owners = {}
    for manager, owned in before.items():
        if owned.api_version not in places:
            continue
        path = _path(places[owned.api_version])
        if not _has(owned.fields, path) or by_scale.pop(manager, None) is not None:
            owners[manager] = owned
            continue
        remaining_fields = fieldset.difference(owned.fields, fieldset.make_set([path]))
        if remaining_fields:
            owners[manager] = Owned(remaining_fields, owned.api_version, owned.time)
    owners |= _make_scale_owners(by_scale, before, _path(places[api_version]), api_version=api_version)
    return managedfields.encode(owners)


def _make_scale_owners(owners: Owners, before: Owners, path: tuple[str, ...], *, api_version: str) -> Owners:
    fields = fieldset.make_set([path])
    return {
        manager: Owned(fields, api_version, before[manager].time if manager in before else None)
        for manager, owned in owners.items()
        if _has(owned.fields, _IN_SCALE)
    }


def _path(place: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(map(fieldset.field, place or ()))


def _has(fields: fieldset.FieldSet, path: tuple[str, ...]) -> bool:
    for element in path[:-1]:
        fields = fieldset.child(fields, element)
    return bool(path) and fieldset.is_member(fields, path[-1])
