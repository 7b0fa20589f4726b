"""Deliberation: decides on the event loop or in a thread, and delays changes until a decision is carried out.

Most decisions take less than a millisecond and are made on the event loop. A decision that uses up its allowance of
effort, because selectors are costly or the search for devices is hard, is made again in a thread, and the loop serves
other tasks meanwhile. After a long decision the next one begins in the thread.

A decision reads the scheduler's snapshot, which must not change until the decision is carried out. So changes that
informers report while a thread decides are kept back, in their order, until :meth:`Deliberation.settle`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from drachma.api import meta
from drachma.bounds import effort
from drachma.client import target
from drachma.runtime import informer

ObjectT = TypeVar("ObjectT", bound=meta.Object)
_T = TypeVar("_T")

_LONG_SECONDS: Final = 0.005
"""Duration of a decision after which the next one begins in the thread."""


class Source(Protocol[ObjectT]):
    """Informer, as far as handlers need it."""

    @property
    def resource_version(self) -> str: ...

    def add_handler(self, handler: informer.Handler[ObjectT]) -> None: ...


class Sources(Protocol):
    """Informers of all kinds, as far as handlers need them."""

    def of(self, kind: target.Of[ObjectT]) -> Source[ObjectT]: ...


class Deliberation:
    """Makes one decision at a time, on the event loop or in a thread."""

    def __init__(self, monotonic: Callable[[], float], *, has_thread: bool = True) -> None:
        """Without a thread, all decisions are made on the event loop, however long they take."""
        self._monotonic: Final = monotonic
        self._has_thread: Final = has_thread
        self._thread: concurrent.futures.ThreadPoolExecutor | None = None
        self._allowance = effort.Allowance(0)
        self._begins_in_thread = False
        self._changes: Final[list[Callable[[], None]]] = []
        self._settled: asyncio.Event | None = None

    async def decide(self, function: Callable[[], _T]) -> _T:
        """Return what a function returns that changes nothing. Changes wait until :meth:`settle` if it takes long."""
        if not self._has_thread:
            return function()
        if not self._begins_in_thread:
            try:
                with effort.limit(effort.Allowance(effort.LOOP_UNITS)):
                    return function()
            except effort.OverrunError:
                pass
        return await self._decide_in_thread(function)

    async def _decide_in_thread(self, function: Callable[[], _T]) -> _T:
        if self._settled is None:
            self._settled = asyncio.Event()
        if self._thread is None:
            self._thread = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="scheduler")
        self._allowance = allowance = effort.Allowance(effort.NO_LIMIT)

        def run() -> tuple[_T, float]:
            began = self._monotonic()
            with effort.limit(allowance):
                return function(), self._monotonic() - began

        result, seconds = await asyncio.get_running_loop().run_in_executor(self._thread, run)
        self._begins_in_thread = seconds > _LONG_SECONDS
        return result

    def settle(self) -> None:
        """Make the changes that were kept back, after the decision is carried out."""
        settled, self._settled = self._settled, None
        if settled is None:
            return
        changes = tuple(self._changes)
        self._changes.clear()
        for change in changes:
            change()
        settled.set()

    async def settled(self) -> None:
        """Return once the snapshot may be changed."""
        while self._settled is not None:
            await self._settled.wait()

    def close(self) -> None:
        """Cancel a decision that the thread is making, and end the thread."""
        self._allowance.cancel()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def delay(self, sources: Sources) -> Sources:
        """Return the same informers, whose changes wait while a thread decides."""
        return _Delayed(sources, self)

    def change(self, function: Callable[..., None], *arguments: Any) -> None:
        """Make a change to the snapshot: now, or when the decision that a thread makes is carried out."""
        if self._settled is None:
            function(*arguments)
        else:
            self._changes.append(lambda: function(*arguments))


class _Delayed:
    def __init__(self, sources: Sources, deliberation: Deliberation) -> None:
        self._sources: Final = sources
        self._deliberation: Final = deliberation

    def of(self, kind: target.Of[ObjectT]) -> Source[ObjectT]:
        return _DelayedSource(self._sources.of(kind), self._deliberation)


class _DelayedSource(Generic[ObjectT]):
    def __init__(self, source: Source[ObjectT], deliberation: Deliberation) -> None:
        self._source: Final = source
        self._deliberation: Final = deliberation

    @property
    def resource_version(self) -> str:
        return self._source.resource_version

    def add_handler(self, handler: informer.Handler[ObjectT]) -> None:
        change = self._deliberation.change
        self._source.add_handler(
            informer.Handler(
                added=functools.partial(change, handler.added),
                updated=functools.partial(change, handler.updated),
                deleted=functools.partial(change, handler.deleted),
            )
        )
