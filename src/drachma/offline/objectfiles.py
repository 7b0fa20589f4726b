"""Objects from files: each is read, named, placed and there once; what is wrong is told with its place.

All that commands read of clusters comes through here. Which objects matter, and what becomes of them, is up to those
who read: :mod:`drachma.offline.clusterfiles` for whole clusters, :mod:`drachma.offline.clusterdump` for claims and
devices, :mod:`drachma.offline.queueingfiles` for queues.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeVar

from drachma import errors
from drachma.api import codec, meta
from drachma.claims import identity
from drachma.offline import alphasources, manifestfiles, placement

MAX_BYTES: Final = 1024 * 1024 * 1024
"""The dump of a large cluster is far larger than any manifest."""

ObjectT = TypeVar("ObjectT", bound=meta.Object)
Take = Callable[[manifestfiles.Source], None]


class ObjectFiles:
    """What was read so far."""

    def __init__(self) -> None:
        self.now: Final = datetime.now(UTC)
        """When it was read, for defaults that depend on it."""
        self.warnings: Final[list[str]] = []
        self.problems: Final[list[str]] = []
        """What could not be read; nothing is to be trusted where there are any."""
        self._places: Final[dict[tuple[str, str], str]] = {}

    def read(self, paths: list[str], take: Take) -> None:
        """Hands over every document of files and folders, those of v1alpha2 in v1."""
        sources = manifestfiles.read(paths, max_bytes=MAX_BYTES)
        for source in alphasources.translated(sources, self.warnings):
            if isinstance(source, manifestfiles.Unreadable):
                self.problems.append(str(source))
            else:
                self.attempt(source, take)

    def attempt(self, source: manifestfiles.Source, take: Take) -> None:
        """Hands over one document; what is refused becomes a problem."""
        try:
            take(source)
        except errors.DrachmaError as error:
            self.problems.append(f"{source.place}: {error}")

    def accept(self, source: manifestfiles.Source, read: ObjectT, *, namespaced: bool) -> ObjectT:
        """An object where it is in the cluster; DecodeError where it has no name, or is there already."""
        if not read.metadata.name:
            raise errors.DecodeError(f"{codec.title(source.content)}: metadata.name: required")
        placed = placement.in_namespace(read) if namespaced else read
        self.note(source, identity.label(placed.metadata))
        return placed

    def note(self, source: manifestfiles.Source, label: str) -> None:
        """Take note that an object is there; DecodeError where it was already."""
        key = str(source.content.get("kind")), label
        if key in self._places:
            raise errors.DecodeError(f"{codec.title(source.content)}: is given twice, first in {self._places[key]}")
        self._places[key] = source.place
