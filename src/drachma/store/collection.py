"""The committed objects of one resource in key order, with its recent events, for lists and watches.

``state.State`` keeps one collection per resource and calls it with committed events only. A list at an older revision
is the current list with the later events undone, so history costs nothing until it is read.
"""

import bisect
import heapq
from collections.abc import Callable, Iterator
from typing import Final

from drachma.store import protocol, record

_DELETED: Final = record.Change.DELETED


class _Namespace:
    """Objects of one namespace by name, and the names in order."""

    __slots__ = ("names", "records")

    def __init__(self) -> None:
        self.records: dict[str, record.Record] = {}
        # A sorted list moves a few hundred kilobytes at worst when it grows in the middle, which is cheaper
        # at the sizes of a cluster than any tree in Python.
        self.names: list[str] = []


class Collection:
    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}
        # Upstream sorts by "namespace/name" as one text: "a-b/x" comes before "a/x". Namespaces that carry
        # their slash sort that way.
        self._order: list[str] = []
        self._revisions: list[int] = []
        self._events: list[record.Event] = []

    def restore(self, item: record.Record) -> None:
        """Add an object whose history is compacted."""
        self._put(item)

    def apply(self, event: record.Event) -> None:
        item = event.record
        if event.change is _DELETED:
            self._remove(item.key)
        else:
            self._put(item)
        self._revisions.append(item.revision)
        self._events.append(event)

    def events(self, after: int, limit: int) -> list[record.Event]:
        """Return at most ``limit`` kept events above a revision, oldest first."""
        first = bisect.bisect_right(self._revisions, after)
        return self._events[first : first + limit]

    def forget(self, revision: int) -> None:
        """Drop events up to a revision."""
        end = bisect.bisect_right(self._revisions, revision)
        del self._revisions[:end]
        del self._events[:end]

    def page(
        self,
        namespace: str | None,
        *,
        revision: int,
        limit: int | None,
        after: record.Key | None,
        where: Callable[[record.Record], bool] | None,
    ) -> protocol.Page:
        """Return one page of the list at ``revision``, which the caller has checked to be within the history."""
        old_objects = self._find_old_objects(revision)
        records: list[record.Record] = []
        for item in self._walk(namespace, after, old_objects):
            if where is not None and not where(item):
                continue
            if limit is not None and len(records) == limit:
                last = records[-1].key
                remaining_count = None if where is not None else self._count(namespace, last, old_objects)
                return protocol.Page(records, revision, last, remaining_count)
            records.append(item)
        return protocol.Page(records, revision, None, 0)

    def _put(self, item: record.Record) -> None:
        _, namespace, name = item.key
        home = self._namespaces.get(namespace)
        if home is None:
            home = self._namespaces[namespace] = _Namespace()
            bisect.insort(self._order, namespace + "/")
        if name not in home.records:
            bisect.insort(home.names, name)
        home.records[name] = item

    def _remove(self, key: record.Key) -> None:
        home = self._namespaces[key.namespace]
        del home.records[key.name]
        del home.names[bisect.bisect_left(home.names, key.name)]
        if not home.records:
            del self._namespaces[key.namespace]
            del self._order[bisect.bisect_left(self._order, key.namespace + "/")]

    def _find_old_objects(self, revision: int) -> dict[str, dict[str, record.Record | None]]:
        """Return the objects that differed at ``revision``, by namespace and name; None for no object."""
        old_objects: dict[str, dict[str, record.Record | None]] = {}
        for position in range(len(self._events) - 1, -1, -1):
            event = self._events[position]
            if event.record.revision <= revision:
                break
            old_objects.setdefault(event.record.key.namespace, {})[event.record.key.name] = event.previous
        return old_objects

    def _walk(
        self,
        namespace: str | None,
        after: record.Key | None,
        old_objects: dict[str, dict[str, record.Record | None]],
    ) -> Iterator[record.Record]:
        for place in self._places(namespace, old_objects):
            if after is not None and place + "/" < after.namespace + "/":
                continue
            home = self._namespaces.get(place, _EMPTY)
            names = home.names
            then = old_objects.get(place)
            behind = after.name if after is not None and place == after.namespace else None
            if behind is not None:
                names = names[bisect.bisect_right(names, behind) :]
            if then is None:
                yield from map(home.records.__getitem__, names)
                continue
            revived = sorted(
                name
                for name, item in then.items()
                if item is not None and name not in home.records and (behind is None or name > behind)
            )
            for name in heapq.merge(names, revived):
                item = then[name] if name in then else home.records[name]
                if item is not None:
                    yield item

    def _places(self, namespace: str | None, old_objects: dict[str, dict[str, record.Record | None]]) -> Iterator[str]:
        if namespace is not None:
            yield namespace
            return
        vanished = sorted(place + "/" for place in old_objects if place not in self._namespaces)
        for place in heapq.merge(self._order, vanished):
            yield place[:-1]

    def _count(
        self, namespace: str | None, last: record.Key, old_objects: dict[str, dict[str, record.Record | None]]
    ) -> int:
        """Return the number of objects in the list after the key ``last``."""
        border = (last.namespace + "/", last.name)
        count = 0
        for place in [namespace] if namespace is not None else self._namespaces:
            home = self._namespaces.get(place, _EMPTY)
            if place == last.namespace:
                count += len(home.names) - bisect.bisect_right(home.names, last.name)
            elif place + "/" > border[0]:
                count += len(home.names)
        for place, changes in old_objects.items():
            if namespace is not None and place != namespace:
                continue
            home = self._namespaces.get(place, _EMPTY)
            for name, item in changes.items():
                if (place + "/", name) > border:
                    count += (item is not None) - (name in home.records)
        return count


_EMPTY = _Namespace()
