"""Reading a store from another thread: the store belongs to the event loop, and is read there.

The state can change while a thread decides. So lookups can be recorded, and the committer checks that they are still
current.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar

from drachma.server.lanes import Lanes
from drachma.server.reads.reader import Reader
from drachma.store import protocol, record

Lookups: TypeAlias = Mapping[record.Key, record.Record | None]
"""Objects that were looked up by key, as they were then."""

_T = TypeVar("_T")


class DistantReader:
    """A :class:`Reader` for use in lanes and on the event loop. One that records lookups is for one lane."""

    def __init__(self, store: Reader, lanes: Lanes) -> None:
        self._store: Final = store
        self._on_loop: Final = lanes.call_on_loop
        self._lookups: dict[record.Key, record.Record | None] | None = None

    def run_recording(self, work: Callable[[], _T]) -> tuple[_T, Lookups]:
        """Run ``work``; return its result and its lookups."""
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
        existing = self._on_loop(self._store.get, key)
        if self._lookups is not None:
            # The decision depends on the first lookup.
            self._lookups.setdefault(key, existing)
        return existing

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
    """Return True if all lookups are still current; call it on the event loop."""
    return all(store.get(key) is existing for key, existing in lookups.items())
