"""Objects from files: each has a name and a namespace and is given once. Problems name the place in the file.

Everything that commands read about clusters comes through here. The reader decides which objects matter:
:mod:`drachma.offline.clusterfiles` for whole clusters, :mod:`drachma.offline.claimfiles` for claims and devices,
:mod:`drachma.offline.queueingfiles` for queues. Objects of v1alpha2 are handed over in v1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Final, TypeVar

from drachma import errors
from drachma.api import codec, meta, scheme
from drachma.claims import identity, standins
from drachma.offline import manifestfiles

MAX_BYTES: Final = 1024 * 1024 * 1024
"""Limit for a file. The dump of a large cluster is far larger than any manifest."""

_FIRST_ALPHA: Final = f"{scheme.RESOURCE_GROUP}/v1alpha2"

ObjectT = TypeVar("ObjectT", bound=meta.Object)
Take = Callable[[manifestfiles.Source], None]


class ObjectFiles:
    """Reader of objects, with the problems so far."""

    def __init__(self) -> None:
        self.now: Final = datetime.now(UTC)
        """Time of the read, for defaults that depend on it."""
        self.warnings: Final[list[str]] = []
        self.problems: Final[list[str]] = []
        """Messages about unreadable objects. If there are any, the rest must not be used."""
        self._places: Final[dict[tuple[str, str], str]] = {}

    def read(self, paths: list[str], take: Take) -> None:
        """Call ``take`` with every document of files and folders."""
        sources = manifestfiles.read(paths, max_bytes=MAX_BYTES)
        for source in _translate(sources, self.warnings):
            if isinstance(source, manifestfiles.Unreadable):
                self.problems.append(str(source))
            else:
                self.attempt(source, take)

    def attempt(self, source: manifestfiles.Source, take: Take) -> None:
        """Call ``take`` with one document, and add an error to the problems."""
        try:
            take(source)
        except errors.DrachmaError as error:
            self.problems.append(f"{source.place}: {error}")

    def accept(self, source: manifestfiles.Source, decoded: ObjectT, *, namespaced: bool) -> ObjectT:
        """Return an object with its namespace. Raises DecodeError if it has no name, or was given before."""
        if not decoded.metadata.name:
            raise errors.DecodeError(f"{codec.title(source.content)}: metadata.name: required")
        accepted = manifestfiles.with_namespace(decoded) if namespaced else decoded
        self.note(source, identity.label(accepted.metadata))
        return accepted

    def note(self, source: manifestfiles.Source, label: str) -> None:
        """Record that an object was given. Raises DecodeError if it was given before."""
        key = source.kind, label
        if key in self._places:
            raise errors.DecodeError(f"{codec.title(source.content)}: is given twice, first in {self._places[key]}")
        self._places[key] = source.place


def _translate(
    sources: Iterable[manifestfiles.Source | manifestfiles.Unreadable], notes: list[str]
) -> Iterator[manifestfiles.Source | manifestfiles.Unreadable]:
    """Yield all sources, with objects of v1alpha2 last and in v1. Add what v1 cannot express to ``notes``."""
    old: list[manifestfiles.Source] = []
    translated: list[manifestfiles.Source] = []
    for source in sources:
        if isinstance(source, manifestfiles.Source):
            if source.api_version == _FIRST_ALPHA:
                old.append(source)
                continue
            if source.kind in ("ResourceClaim", "ResourceSlice"):
                translated.append(source)
        yield source
    # A server that has translated the objects of v1alpha2 serves the results next to them.
    if not old or any(map(_is_counterpart, translated)):
        return
    # Most clusters have no such objects, and the migration takes time to import.
    from drachma.offline import migrationdocuments

    places = [each.place for each in old]
    try:
        done = migrationdocuments.migrate([each.content for each in old])
    except errors.DecodeError as error:
        yield manifestfiles.Unreadable(places[0], str(error))
        return
    notes += done.migration.notes
    for document in done.documents:
        yield manifestfiles.Source(f"{places[0]} (as migrated)", document)


def _is_counterpart(source: manifestfiles.Source) -> bool:
    """Return True for a v1 claim or slice that represents an object of v1alpha2."""
    from drachma.structured import counterpart

    match source.content:
        case {"kind": "ResourceClaim", "metadata": {"annotations": dict(notes)}}:
            return counterpart.CLAIM in notes
        case {"kind": "ResourceSlice", "spec": {"pool": {"name": str(name)}}}:
            return standins.is_stand_in(name)
    return False
