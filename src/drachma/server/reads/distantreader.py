"""Reading a store from a lane: the store belongs to the event loop, and is asked there.

What is decided in a lane is decided on what others change meanwhile. So lookups can be noted, and whoever acts on the
decision sees to it that they are still true.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar

from drachma.server.lanes import Lanes
from drachma.server.reads.reader import Reader
from drachma.store import protocol, record

Lookups: TypeAlias = Mapping[record.Key, record.Record | None]
"""Objects that were looked up by their keys, as they were then."""

_T = TypeVar("_T")


class DistantReader:
    """A :class:`Reader` for use in lanes and on the loop. One that notes lookups is for one lane."""

    def __init__(self, store: Reader, lanes: Lanes) -> None:
        self._store: Final = store
        self._on_loop: Final = lanes.on_loop
        self._lookups: dict[record.Key, record.Record | None] | None = None

    def noting(self, work: Callable[[], _T]) -> tuple[_T, Lookups]:
        """What ``work`` makes, and what it has looked up for that."""
        lookups: dict[record.Key, record.Record | None] = {}
        self._lookups = lookups
        try:
            return work(), lookups
        finally:
            self._lookups = None

    @property
    def revision(self) -> int:
        return self._on_loop(lambda: self._store.revision)

    @property
    def compacted(self) -> int:
        return self._on_loop(lambda: self._store.compacted)

    def changed(self, resource: str) -> int:
        return self._on_loop(self._store.changed, resource)

    def get(self, key: record.Key) -> record.Record | None:
        stored = self._on_loop(self._store.get, key)
        if self._lookups is not None:
            # What was seen first is what was decided on.
            self._lookups.setdefault(key, stored)
        return stored

    def list(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        revision: int | None = None,
        limit: int | None = None,
        after: record.Key | None = None,
        where: Callable[[record.Record], bool] | None = None,
    ) -> protocol.Page:
        return self._on_loop(
            self._store.list, resource, namespace, revision=revision, limit=limit, after=after, where=where
        )

    def watch(self, resource: str, namespace: str | None = None, *, after: int) -> protocol.Watch:
        return self._on_loop(self._store.watch, resource, namespace, after=after)


def is_current(lookups: Lookups, store: Reader) -> bool:
    """Whether all that was looked up is still so; asked on the loop."""
    return all(store.get(key) is stored for key, stored in lookups.items())
