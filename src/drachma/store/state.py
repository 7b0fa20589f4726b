"""The committed state of a store in memory: all objects, and the log of recent events.

This is the watch cache. The engine applies committed events to it, SQLite's loader rebuilds it at the start, and
reads and watches use nothing else. It knows nothing of pending writes, threads or files.
"""

import collections
import itertools
from collections.abc import Callable

import msgspec

from drachma import errors
from drachma.store import collection, protocol, record


class Compaction(msgspec.Struct, frozen=True):
    """A step that forgets history up to ``revision``.

    ``doomed`` are the revisions of versions nobody can ask for any more; ``kept`` counts the versions up to
    ``revision`` that stay because they are objects still.
    """

    revision: int
    doomed: list[int]
    kept: int


class State:
    def __init__(self, *, compacted: int = protocol.FIRST_REVISION, kept: int = 0) -> None:
        self.revision = compacted
        self.compacted = compacted
        self._kept = kept
        # Written to by index, which makes what is not there; read by get, which does not.
        self._collections: collections.defaultdict[str, collection.Collection] = collections.defaultdict(
            collection.Collection
        )
        # One event per revision and none missing, so positions are revisions less the compacted one.
        self._log: collections.deque[record.Event] = collections.deque()
        self._log_bytes = 0

    def get(self, key: record.Key) -> record.Record | None:
        # Every write asks several times, so nothing is called for it.
        resource, namespace, name = key
        return self._collections[resource].get(namespace, name) if resource in self._collections else None

    @property
    def resources(self) -> list[str]:
        """All resources that have or had objects, in order."""
        return sorted(self._collections)

    def changed(self, resource: str) -> int:
        # Steps of every write ask whether there is any object of a kind at all.
        return self._collections[resource].changed if resource in self._collections else 0

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
        found = self._collections.get(resource)
        if found is None:
            return protocol.Page([], revision, None, 0)
        return found.page(namespace, revision=revision, limit=limit, after=after, where=where)

    def events(self, resource: str, after: int, *, limit: int) -> list[record.Event]:
        """At most ``limit`` events of a resource above a revision, which is not compacted."""
        found = self._collections.get(resource)
        return [] if found is None else found.events(after, limit)

    def restore(self, item: record.Record) -> None:
        """Puts in an object written at or before the compacted revision."""
        self._collections[item.key.resource].restore(item)

    def apply(self, event: record.Event) -> None:
        """Takes over the event of the next revision."""
        item = event.record
        self._collections[item.key.resource].apply(event)
        self._log.append(event)
        self._log_bytes += len(item.data)
        self.revision = item.revision

    def excess(self, limits: protocol.Limits, *, most: int) -> int:
        """How many of the oldest events to forget, at most ``most``.

        History may overshoot its limits by a tenth and is then cut back to them: cutting at every commit
        would touch old pages of the disk each time.
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
        """What compacting to a committed revision removes; changes nothing."""
        doomed: list[int] = []
        kept = self._kept
        for event in self._log:
            if event.record.revision > revision:
                break
            if event.previous is None:
                kept += 1
            else:
                doomed.append(event.previous.revision)
            if event.change is record.Change.DELETED:
                doomed.append(event.record.revision)
                kept -= 1
        return Compaction(revision, doomed, kept)

    def compact(self, compaction: Compaction) -> None:
        touched = set()
        while self._log and self._log[0].record.revision <= compaction.revision:
            event = self._log.popleft()
            self._log_bytes -= len(event.record.data)
            touched.add(event.record.key.resource)
        for resource in touched:
            self._collections[resource].forget(compaction.revision)
        self.compacted = compaction.revision
        self._kept = compaction.kept
