"""The committed state of a store in memory: all objects, and the log of recent events.

This is the watch cache. The engine applies committed events to it, SQLite's loader rebuilds it at the start, and reads
and watches use nothing else. It has no notion of pending writes, threads or files.
"""

import collections
import itertools
from collections.abc import Callable
from typing import Final

import msgspec

from drachma import errors
from drachma.store import collection, protocol, record

_DELETED: Final = record.Change.DELETED


class Compaction(msgspec.Struct, frozen=True):
    """A step that drops history up to ``revision``.

    ``doomed`` are the revisions of versions that can no longer be read; ``kept`` counts the versions up to ``revision``
    that stay because they are current objects.
    """

    revision: int
    doomed: list[int]
    kept: int


class State:
    def __init__(self, *, compacted: int = protocol.FIRST_REVISION, object_count: int = 0) -> None:
        self.revision = compacted
        self.compacted = compacted
        self._object_count = object_count
        # Writes use indexing, which creates missing entries; reads use get, which does not.
        self._collections: collections.defaultdict[str, collection.Collection] = collections.defaultdict(
            collection.Collection
        )
        self._objects: Final[dict[record.Key, record.Record]] = {}
        self.get: Final[Callable[[record.Key], record.Record | None]] = self._objects.get
        """Returns the object under a key, or None; every write asks several times."""
        # The newest revision of each resource; the server asks for those of kinds only, so it stays small.
        self._changed: Final[collections.defaultdict[str, int]] = collections.defaultdict(int)
        self.changed: Final[Callable[[str], int]] = self._changed.__getitem__
        """Returns the revision of the newest write to a resource; steps of every call ask."""
        # One event per revision and none missing, so positions are revisions minus the compacted one.
        self._log: collections.deque[record.Event] = collections.deque()
        self._log_bytes = 0

    @property
    def resources(self) -> list[str]:
        """Return all resources that have or had objects, in order."""
        return sorted(self._collections)

    def page(
        self,
        resource: str,
        namespace: str | None,
        *,
        revision: int | None,
        limit: int | None,
        after: record.Key | None,
        where: Callable[[record.Record], bool] | None,
    ) -> protocol.Page:
        if revision is None:
            revision = self.revision
        elif revision > self.revision:
            raise errors.FutureRevisionError(
                f"list of {resource}: revision {revision} has not been reached, the newest is {self.revision}"
            )
        elif revision < self.compacted:
            raise errors.GoneError(
                f"list of {resource}: revision {revision} is compacted, the oldest kept is {self.compacted}"
            )
        objects = self._collections.get(resource)
        if objects is None:
            return protocol.Page([], revision, None, 0)
        return objects.page(namespace, revision=revision, limit=limit, after=after, where=where)

    def events(self, resource: str, after: int, *, limit: int) -> list[record.Event]:
        """Return at most ``limit`` events of a resource above a revision, which is not compacted."""
        objects = self._collections.get(resource)
        return [] if objects is None else objects.events(after, limit)

    def restore(self, item: record.Record) -> None:
        """Add an object written at or before the compacted revision."""
        resource = item.key.resource
        self._objects[item.key] = item
        self._collections[resource].restore(item)
        self._changed[resource] = max(self._changed[resource], item.revision)

    def apply(self, event: record.Event) -> None:
        """Apply the event of the next revision."""
        item = event.record
        key = item.key
        resource = key.resource
        if event.change is _DELETED:
            del self._objects[key]
        else:
            self._objects[key] = item
        self._collections[resource].apply(event)
        self._changed[resource] = item.revision
        self._log.append(event)
        self._log_bytes += len(item.data)
        self.revision = item.revision

    def excess(self, limits: protocol.Limits, *, most: int) -> int:
        """Return the number of oldest events to drop, at most ``most``.

        History may exceed its limits by a tenth and is then cut back to them: cutting at every commit would touch old
        pages of the disk each time.
        """
        many = len(self._log) - limits.history_events
        much = self._log_bytes - limits.history_bytes
        if many <= limits.history_events // 10 and much <= limits.history_bytes // 10:
            return 0
        count = 0
        for event in itertools.islice(self._log, most):
            if count >= many and much <= 0:
                break
            much -= len(event.record.data)
            count += 1
        return count

    def plan_compaction(self, revision: int) -> Compaction:
        """Return the effect of compacting to a committed revision; changes nothing."""
        doomed: list[int] = []
        object_count = self._object_count
        for event in self._log:
            if event.record.revision > revision:
                break
            if event.previous is None:
                object_count += 1
            else:
                doomed.append(event.previous.revision)
            if event.change is _DELETED:
                doomed.append(event.record.revision)
                object_count -= 1
        return Compaction(revision, doomed, object_count)

    def compact(self, compaction: Compaction) -> None:
        touched = set()
        while self._log and self._log[0].record.revision <= compaction.revision:
            event = self._log.popleft()
            self._log_bytes -= len(event.record.data)
            touched.add(event.record.key.resource)
        for resource in touched:
            self._collections[resource].forget(compaction.revision)
        self.compacted = compaction.revision
        self._object_count = compaction.kept
