"""Commits of one client that begin at the same time, sent to the server as one.

Components commit for one pod at a time, and hundreds of pods wait. A common commit costs the server less than the
separate ones (:mod:`drachma.server.pipeline.stencil`), and one message instead of many on the way to another process.

Callers do not notice. A commit is still made as a whole or not at all. If the server refuses a common commit, the
commits in it are made one by one, each with its own result. Commits that write the same object are never made together,
because the later one may be based on a version that the earlier one replaces.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from drachma import errors

MOST_WRITES: Final = 64
"""Writes of a common commit. More would hold the event loop of the server for too long."""

WriteT = TypeVar("WriteT")
StoredT = TypeVar("StoredT")


class _Request(msgspec.Struct, Generic[WriteT, StoredT], frozen=True, eq=False):
    """A commit that waits, with the objects that it writes."""

    writes: Sequence[WriteT]
    keys: frozenset[Hashable]
    answer: asyncio.Future[Sequence[StoredT]]


class Combiner(Generic[WriteT, StoredT]):
    """Makes commits of one event loop together.

    ``commit`` makes one commit, and raises errors.CommitRefusedError if a write of it is refused. ``key_of`` identifies
    the object of a write.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[WriteT]], Coroutine[Any, Any, Sequence[StoredT]]],
        *,
        key_of: Callable[[WriteT], Hashable],
    ) -> None:
        self._commit: Final = commit
        self._key_of: Final = key_of
        self._waiting: list[_Request[WriteT, StoredT]] = []
        self._tasks: Final[set[asyncio.Task[None]]] = set()

    def commit(self, writes: Sequence[WriteT]) -> asyncio.Future[Sequence[StoredT]]:
        """Make a commit, in the next turn of the event loop. The result raises what the commit raises."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._begin)
        request = _Request(writes, frozenset(map(self._key_of, writes)), loop.create_future())
        self._waiting.append(request)
        return request.answer

    def _begin(self) -> None:
        requests, self._waiting = self._waiting, []
        loop = asyncio.get_running_loop()
        for batch in _divide([each for each in requests if not each.answer.done()]):
            task = loop.create_task(self._make(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _make(self, batch: Sequence[_Request[WriteT, StoredT]]) -> None:
        if len(batch) == 1:
            await self._make_one(batch[0])
            return
        try:
            entries = await self._commit([write for request in batch for write in request.writes])
        except errors.CommitRefusedError:
            # Nothing is written. Each of them has its own answer.
            for request in batch:
                await self._make_one(request)
            return
        except BaseException as error:
            for request in batch:
                _fail(request, error)
            if not isinstance(error, Exception):
                raise
            return
        begin = 0
        for request in batch:
            end = begin + len(request.writes)
            if not request.answer.done():
                request.answer.set_result(entries[begin:end])
            begin = end

    async def _make_one(self, request: _Request[WriteT, StoredT]) -> None:
        if request.answer.done():
            return
        try:
            entries = await self._commit(request.writes)
        except BaseException as error:
            _fail(request, error)
            if not isinstance(error, Exception):
                raise
            return
        if not request.answer.done():
            request.answer.set_result(entries)


def _fail(request: _Request[WriteT, StoredT], error: BaseException) -> None:
    if request.answer.done():
        return
    if isinstance(error, asyncio.CancelledError):
        request.answer.cancel()
    else:
        request.answer.set_exception(error)


def _divide(requests: Sequence[_Request[WriteT, StoredT]]) -> list[list[_Request[WriteT, StoredT]]]:
    """Return the requests in their order, in batches of different objects."""
    batches: list[list[_Request[WriteT, StoredT]]] = []
    keys: set[Hashable] = set()
    count = 0
    for request in requests:
        if not batches or count + len(request.writes) > MOST_WRITES or not keys.isdisjoint(request.keys):
            batches.append([])
            keys.clear()
            count = 0
        batches[-1].append(request)
        keys |= request.keys
        count += len(request.writes)
    return batches
