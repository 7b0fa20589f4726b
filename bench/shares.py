"""Whose processor time it is, where several work on one event loop.

Time belongs to whoever was entered last. What somebody awaits is entered step by step: while it waits, others work. So
nothing is estimated, and who calls somebody else does not pay for them.
"""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

from drachma.api import meta
from drachma.client import local, target

_ResultT = TypeVar("_ResultT")


class Shares:
    """Seconds of the processor by whom they were spent for; ``rest`` are those of nobody who was entered."""

    def __init__(self, rest: str) -> None:
        self._entered = [rest]
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._since = time.thread_time()

    def enter(self, name: str) -> None:
        """From now on somebody works, until they leave."""
        self._settle()
        self._entered.append(name)

    def leave(self) -> None:
        """Who was entered last is done, for now."""
        self._settle()
        self._entered.pop()

    @contextlib.contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Somebody works meanwhile; they must not wait for anything."""
        self.enter(name)
        try:
            yield
        finally:
            self.leave()

    def awaiting(self, name: str, work: Coroutine[Any, Any, _ResultT]) -> Coroutine[Any, Any, _ResultT]:
        """What somebody does, whenever it is not waiting."""
        return _Steps(self, name, work)

    def seconds(self) -> Mapping[str, float]:
        """What everybody has spent so far."""
        self._settle()
        return self._seconds.copy()

    def _settle(self) -> None:
        now = time.thread_time()
        self._seconds[self._entered[-1]] += now - self._since
        self._since = now


class _Steps(Coroutine[Any, Any, _ResultT]):
    """A coroutine that is entered for every step of another."""

    __slots__ = ("_name", "_shares", "_work")

    def __init__(self, shares: Shares, name: str, work: Coroutine[Any, Any, _ResultT]) -> None:
        self._shares = shares
        self._name = name
        self._work = work

    def send(self, value: Any) -> Any:
        self._shares.enter(self._name)
        try:
            return self._work.send(value)
        finally:
            self._shares.leave()

    def throw(self, *interruption: Any) -> Any:
        self._shares.enter(self._name)
        try:
            return self._work.throw(*interruption)
        finally:
            self._shares.leave()

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Self:
        return self

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self.send(None)


class SharedBackend:
    """A server in the process, whose time is counted; see ``local.Backend``."""

    def __init__(self, backend: local.Backend, shares: Shares, *, name: str) -> None:
        self._backend = backend
        self._shares = shares
        self._name = name

    def get(self, place: local.Place) -> Coroutine[Any, Any, local.Stored]:
        return self._shares.awaiting(self._name, self._backend.get(place))

    def get_document(self, place: local.Place) -> Coroutine[Any, Any, bytes]:
        return self._shares.awaiting(self._name, self._backend.get_document(place))

    def write_document(self, wanted: local.Write) -> Coroutine[Any, Any, bytes]:
        return self._shares.awaiting(self._name, self._backend.write_document(wanted))

    def list(self, place: local.Place, query: local.Query) -> Coroutine[Any, Any, local.Page]:
        return self._shares.awaiting(self._name, self._backend.list(place, query))

    async def watch(self, place: local.Place, query: local.Query) -> local.Feed:
        feed = await self._shares.awaiting(self._name, self._backend.watch(place, query))
        return _SharedFeed(feed, self._shares, name=self._name)

    def write(self, wanted: local.Write) -> Coroutine[Any, Any, local.Stored]:
        return self._shares.awaiting(self._name, self._backend.write(wanted))

    def commit(self, several: Sequence[local.Write]) -> Coroutine[Any, Any, Sequence[local.Stored]]:
        return self._shares.awaiting(self._name, self._backend.commit(several))

    def resources(self) -> Coroutine[Any, Any, Sequence[target.Target[meta.Object]]]:
        return self._backend.resources()

    def openapi(self, group: str, version: str) -> Coroutine[Any, Any, bytes | None]:
        return self._backend.openapi(group, version)


class _SharedFeed:
    def __init__(self, feed: local.Feed, shares: Shares, *, name: str) -> None:
        self._feed = feed
        self._shares = shares
        self._name = name

    def batch(self) -> Coroutine[Any, Any, Sequence[tuple[str, local.Stored]]]:
        return self._shares.awaiting(self._name, self._feed.batch())

    def close(self) -> None:
        self._feed.close()
