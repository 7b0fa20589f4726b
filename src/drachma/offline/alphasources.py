"""Manifests of v1alpha2 among others, read as ``drachma migrate`` would write them: offline tools only know v1.

What was read from a server has v1 objects that stand for those of v1alpha2 (ADR 13). Where there are any, they are the
cluster, and those of v1alpha2 are left out: otherwise every device would be there twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from drachma import errors
from drachma.claims import standins
from drachma.offline import manifestfiles, migrationdocuments
from drachma.structured import counterpart


def translated(
    sources: Iterable[manifestfiles.Source | manifestfiles.Unreadable], notes: list[str]
) -> Iterator[manifestfiles.Source | manifestfiles.Unreadable]:
    """All sources, those of v1alpha2 in v1 and last; what v1 cannot express is added to ``notes``."""
    old: list[Any] = []
    places: list[str] = []
    is_from_server = False
    for source in sources:
        if isinstance(source, manifestfiles.Source) and migrationdocuments.is_of_first_alpha(source.content):
            old.append(source.content)
            places.append(source.place)
            continue
        is_from_server |= isinstance(source, manifestfiles.Source) and _stands_for_another(source.content)
        yield source
    if not old or is_from_server:
        return
    try:
        done = migrationdocuments.migrate(old, with_check=False)
    except errors.DecodeError as error:
        yield manifestfiles.Unreadable(places[0], str(error))
        return
    notes += done.notes
    for document in done.documents:
        yield manifestfiles.Source(f"{places[0]} (as migrated)", document)


def _stands_for_another(document: Any) -> bool:
    """Whether a document is a v1 claim or slice that stands for one of v1alpha2."""
    match document:
        case {"kind": "ResourceClaim", "metadata": {"annotations": dict(notes)}}:
            return counterpart.CLAIM in notes
        case {"kind": "ResourceSlice", "spec": {"pool": {"name": str(name)}}}:
            return standins.is_stand_in(name)
    return False
