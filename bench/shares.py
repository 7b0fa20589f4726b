"""Whose processor time it is, where several work on one event loop.

Time belongs to whoever was entered last. What somebody awaits is entered step by step: while it waits, others work. So
nothing is estimated, and who calls somebody else does not pay for them.
"""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Coroutine, Generator, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

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

    async def awaiting(self, name: str, work: Coroutine[Any, Any, _ResultT]) -> _ResultT:
        """What somebody does, whenever it is not waiting."""
        return await _Steps(self, name, work)

    def seconds(self) -> Mapping[str, float]:
        """What everybody has spent so far."""
        self._settle()
        return self._seconds.copy()

    def _settle(self) -> None:
        now = time.thread_time()
        self._seconds[self._entered[-1]] += now - self._since
        self._since = now


class _Steps(Generic[_ResultT]):
    def __init__(self, shares: Shares, name: str, work: Coroutine[Any, Any, _ResultT]) -> None:
        self._shares = shares
        self._name = name
        self._work = work

    def __await__(self) -> Generator[Any, None, _ResultT]:
        interruption: BaseException | None = None
        while True:
            self._shares.enter(self._name)
            try:
                awaited = self._work.send(None) if interruption is None else self._work.throw(interruption)
            except StopIteration as end:
                result: _ResultT = end.value
                return result
            finally:
                self._shares.leave()
            interruption = None
            try:
                yield awaited
            except BaseException as error:
                interruption = error


class SharedBackend:
    """A server in the process, whose time is counted; see ``local.Backend``."""

    def __init__(self, backend: local.Backend, shares: Shares, *, name: str) -> None:
        self._backend = backend
        self._shares = shares
        self._name = name

    async def get(self, place: local.Place) -> local.Stored:
        return await self._shares.awaiting(self._name, self._backend.get(place))

    async def in_version(self, stored: local.Stored, place: local.Place) -> bytes:
        return await self._shares.awaiting(self._name, self._backend.in_version(stored, place))

    async def list(self, place: local.Place, query: local.Query) -> local.Page:
        return await self._shares.awaiting(self._name, self._backend.list(place, query))

    async def watch(self, place: local.Place, query: local.Query) -> local.Feed:
        feed = await self._shares.awaiting(self._name, self._backend.watch(place, query))
        return _SharedFeed(feed, self._shares, name=self._name)

    async def write(self, wanted: local.Write) -> local.Stored:
        return await self._shares.awaiting(self._name, self._backend.write(wanted))

    async def commit(self, several: Sequence[local.Write]) -> Sequence[local.Stored]:
        return await self._shares.awaiting(self._name, self._backend.commit(several))

    def resources(self) -> Sequence[target.Target[meta.Object]]:
        return self._backend.resources()

    def openapi(self, group: str, version: str) -> bytes | None:
        return self._backend.openapi(group, version)


class _SharedFeed:
    def __init__(self, feed: local.Feed, shares: Shares, *, name: str) -> None:
        self._feed = feed
        self._shares = shares
        self._name = name

    async def batch(self) -> Sequence[tuple[str, local.Stored]]:
        return await self._shares.awaiting(self._name, self._feed.batch())

    def close(self) -> None:
        self._feed.close()
