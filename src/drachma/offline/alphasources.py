"""Manifests of v1alpha2 among others, read as ``drachma migrate`` would write them: offline tools only know v1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from drachma import errors
from drachma.offline import manifestfiles, migrationdocuments


def translated(
    sources: Iterable[manifestfiles.Source | manifestfiles.Unreadable], notes: list[str]
) -> Iterator[manifestfiles.Source | manifestfiles.Unreadable]:
    """All sources, those of v1alpha2 in v1 and last; what v1 cannot express is added to ``notes``."""
    old: list[Any] = []
    places: list[str] = []
    for source in sources:
        if isinstance(source, manifestfiles.Source) and migrationdocuments.is_of_first_alpha(source.content):
            old.append(source.content)
            places.append(source.place)
        else:
            yield source
    if not old:
        return
    try:
        done = migrationdocuments.migrate(old, with_check=False)
    except errors.DecodeError as error:
        yield manifestfiles.Unreadable(places[0], str(error))
        return
    notes += done.notes
    for document in done.documents:
        yield manifestfiles.Source(f"{places[0]} (as migrated)", document)
