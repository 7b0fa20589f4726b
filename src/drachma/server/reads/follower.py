"""Indexes of stored objects that are kept up to date by events, at the moment that they are asked.

An index is brought up to date before it answers, so that it never lags behind what is stored, and costs nothing while
nobody asks. Where more has happened than the store remembers, it begins anew.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from drachma import errors
from drachma.server.reads.reader import Reader
from drachma.store import record


class Index(Protocol):
    """What follows some resources."""

    def clear(self) -> None:
        """Forgets everything."""

    def put(self, stored: record.Record) -> None:
        """Takes in an object, new or changed."""

    def drop(self, stored: record.Record) -> None:
        """Forgets an object that is deleted."""


class Follower:
    """Brings an index up to date with resources of a store."""

    def __init__(self, store: Reader, resources: Sequence[str], index: Index) -> None:
        self._store: Final = store
        self._index: Final = index
        self._changed: Final = store.changed
        self._resources: Final = tuple(resources)
        self._seen = -1

    def catch_up(self) -> None:
        """Tells the index of what has happened since the last time; in the order of revisions for each resource."""
        seen, changed = self._seen, self._changed
        for resource in self._resources:
            if changed(resource) > seen:
                self._read()
                return

    def _read(self) -> None:
        store, seen = self._store, self._seen
        self._seen = store.revision
        if seen < 0:
            self._begin()
            return
        try:
            for resource in self._resources:
                if store.changed(resource) > seen:
                    self._read_events(resource, seen)
        except (errors.GoneError, errors.StoreClosedError):
            self._begin()

    def _read_events(self, resource: str, seen: int) -> None:
        with self._store.watch(resource, after=seen) as watch:
            while events := watch.ready():
                for event in events:
                    if event.change is record.Change.DELETED:
                        self._index.drop(event.record)
                    else:
                        self._index.put(event.record)

    def _begin(self) -> None:
        self._index.clear()
        for resource in self._resources:
            for stored in self._store.list(resource).records:
                self._index.put(stored)
