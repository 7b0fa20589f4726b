"""Who owns the number of replicas, said of a scale and of the workload that it is the scale of.

A scale is not stored, and neither is who owns its fields: that is in the ``managedFields`` of the workload. For an
apply to the scale, those are put in terms of a scale (:func:`of_scale`), and what the apply makes of them in terms of
the workload again (:func:`of_workload`). Both follow upstream to the letter, also in that whoever owns the number
through a scale has no time, and that an updater of the workload who still owns it afterwards has a second entry for it.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from drachma.server.ownership import fieldset, managedfields
from drachma.server.ownership.managers import Document, Owned, Owners

Places: TypeAlias = Mapping[str, tuple[str, ...] | None]
"""Where each version of a workload has its number of replicas, by apiVersion; None for one that has no scale."""

_IN_SCALE: Final = ("f:spec", "f:replicas")


def of_scale(entries: Sequence[Document], places: Places, *, api_version: str) -> list[Document]:
    """The entries of a scale: those of a workload that have the number of replicas, in the scale's version."""
    fields = fieldset.of_paths([_IN_SCALE])
    return managedfields.encode(
        {
            manager: Owned(fields, api_version, owned.time)
            for manager, owned in managedfields.decode(entries).items()
            if _has(owned.fields, _path(places.get(owned.api_version)))
        }
    )


def of_workload(
    entries: Sequence[Document], scaled: Sequence[Document], places: Places, *, api_version: str
) -> list[Document]:
    """The entries of a workload, which had these, after an apply to its scale that left ``scaled`` there."""
    before, by_scale = managedfields.decode(entries), managedfields.decode(scaled)
    owners: Owners = {}
    for manager, owned in before.items():
        if owned.api_version not in places:
            continue
        path = _path(places[owned.api_version])
        if not _has(owned.fields, path) or by_scale.pop(manager, None) is not None:
            owners[manager] = owned
            continue
        left = fieldset.difference(owned.fields, fieldset.of_paths([path]))
        if left:
            owners[manager] = Owned(left, owned.api_version, owned.time)
    owners |= _by_scale(by_scale, before, _path(places[api_version]), api_version=api_version)
    return managedfields.encode(owners)


def _by_scale(owners: Owners, before: Owners, path: tuple[str, ...], *, api_version: str) -> Owners:
    fields = fieldset.of_paths([path])
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
