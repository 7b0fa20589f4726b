"""Indexes of stored objects that are updated by events when they are read.

An index is updated before it answers. So it is never behind the store, and costs nothing while it is not used. If the
store no longer has the events since the last update, the index is built again.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from drachma import errors
from drachma.server.reads.reader import Reader
from drachma.store import record


class Index(Protocol):
    """An index of some resources."""

    def clear(self) -> None:
        """Remove all objects."""

    def put(self, existing: record.Record) -> None:
        """Add a new or changed object."""

    def drop(self, existing: record.Record) -> None:
        """Remove a deleted object."""


class Follower:
    """Updates an index from resources of a store."""

    def __init__(self, store: Reader, resources: Sequence[str], index: Index) -> None:
        self._store: Final = store
        self._index: Final = index
        self._changed: Final = store.changed
        self._resources: Final = tuple(resources)
        self._seen = -1

    def catch_up(self) -> None:
        """Pass all changes since the last call to the index, in the order of revisions for each resource."""
        revision, changed = self._seen, self._changed
        for resource in self._resources:
            if changed(resource) > revision:
                self._read()
                return

    def _read(self) -> None:
        revision = self._seen
        self._seen = self._store.revision
        try:
            if revision < 0:
                self._begin()
            else:
                self._read_changes(revision)
        except BaseException:
            # The index may lack some changes, for example after effort.OverrunError.
            self._seen = -1
            raise

    def _read_changes(self, revision: int) -> None:
        try:
            for resource in self._resources:
                if self._store.changed(resource) > revision:
                    self._read_events(resource, revision)
        except (errors.GoneError, errors.StoreClosedError):
            self._begin()

    def _read_events(self, resource: str, revision: int) -> None:
        with self._store.watch(resource, after=revision) as watch:
            while events := watch.ready():
                for event in events:
                    if event.change is record.Change.DELETED:
                        self._index.drop(event.record)
                    else:
                        self._index.put(event.record)

    def _begin(self) -> None:
        self._index.clear()
        for resource in self._resources:
            for existing in self._store.list(resource).records:
                self._index.put(existing)
