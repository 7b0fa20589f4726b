"""Decisions about workloads on their way to the API server.

Writes go out side by side; those of one workload one after the other, and of several decisions about it only the last.
A decision that cannot be written is refused: at once if the workload is not any more what it was decided about, and
else with a pause that grows every time, after the workload was read back. Until then the decision counts: a write
without an answer may have been stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, Final, Protocol

from drachma import errors
from drachma.client import Client
from drachma.queueing.component import resources, workloadwrites
from drachma.queueing.component.caches import Source
from drachma.queueing.kinds import workload

_AT_ONCE: Final = 64
"""Writes that are under way at the same time."""

_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 60.0

_log = logging.getLogger(__name__)


class Spawn(Protocol):
    """Has something done beside all else."""

    def __call__(self, work: Coroutine[Any, Any, None], *, name: str) -> None: ...


class Written(Protocol):
    """Hears that all that was decided about a workload is written."""

    def __call__(self, key: str, /) -> None: ...


class Refused(Protocol):
    """Hears that it cannot be written, and for how many seconds it had better not be tried again."""

    def __call__(self, key: str, pause: float, /) -> None: ...


class DecisionWrites:
    """All writes that are under way."""

    def __init__(
        self,
        client: Client,
        workloads: Source[workload.Workload],
        *,
        observe: Callable[[workload.Workload], None],
        sleep: Callable[[float], Awaitable[None]],
        spawn: Spawn,
        written: Written,
        refused: Refused,
    ) -> None:
        """``observe`` brings stored workloads into ``workloads`` before ``written`` is called."""
        self._client: Final = client
        self._workloads: Final = workloads
        self._observe: Final = observe
        self._sleep: Final = sleep
        self._spawn: Final = spawn
        self._written: Final = written
        self._refused: Final = refused
        self._room: Final = asyncio.Semaphore(_AT_ONCE)
        self._progress: Final = asyncio.Event()
        self._writes: Final[dict[str, _Write]] = {}
        self._refusals: Final[dict[str, int]] = {}
        """How often in a row decisions about a workload could not be written, though it is what it was."""

    def is_under_way(self, key: str) -> bool:
        """Whether something was decided about a workload that is not written yet."""
        return key in self._writes

    def under_way(self) -> Iterator[workload.Workload]:
        """Workloads as they are decided to be."""
        return (write.after for write in self._writes.values())

    async def catch_up(self) -> None:
        """Waits until no more decisions wait to be written than can be at once."""
        while len(self._writes) >= _AT_ONCE:
            self._progress.clear()
            await self._progress.wait()

    def forget(self, key: str) -> None:
        """A workload is gone."""
        self._refusals.pop(key, None)

    def put(self, key: str, after: workload.Workload) -> None:
        """Has a workload written as it was decided to be."""
        under_way = self._writes.get(key)
        if under_way is not None:
            under_way.after = after
            return
        namespace, _, name = key.partition("/")
        before = self._workloads.cache.get(name, namespace=namespace)
        if before is None:
            self._refused(key, 0.0)
            return
        self._writes[key] = _Write(before, after)
        self._spawn(self._carry(key), name=f"status of {key}")

    async def _carry(self, key: str) -> None:
        write = self._writes[key]
        try:
            async with self._room:
                await self._write_latest(write)
        except (errors.ObjectConflictError, errors.ObjectNotFoundError) as error:
            _log.debug("workload %s: what was decided is not written: %s", key, error)
            self._end(key)
            self._refused(key, 0.0)
        except errors.DrachmaError as error:
            _log.warning("workload %s: what was decided is not written: %s", key, error)
            await self._read_back(key, write)
            self._end(key)
            self._refused(key, self._pause(key))
        else:
            self._end(key)
            self._refusals.pop(key, None)
            self._written(key)

    async def _read_back(self, key: str, write: _Write) -> None:
        """Observe what is stored after a write without an answer, which may have been stored all the same.

        The decision counts until a server has answered, so that no quota is given away twice.
        """
        place = write.before.metadata
        while True:
            try:
                self._observe(await self._client.get(resources.WORKLOADS, place.name, namespace=place.namespace))
                return
            except errors.ObjectNotFoundError:
                return
            except errors.DrachmaError as error:
                _log.debug("workload %s: is not read back: %s", key, error)
            await self._sleep(self._pause(key))

    def _end(self, key: str) -> None:
        del self._writes[key]
        self._progress.set()

    def _pause(self, key: str) -> float:
        refusals = self._refusals[key] = self._refusals.get(key, 0) + 1
        return float(min(_FIRST_PAUSE_SECONDS * 2 ** min(refusals - 1, 30), _LONGEST_PAUSE_SECONDS))

    async def _write_latest(self, write: _Write) -> None:
        """Writes what was decided, until nothing was decided meanwhile.

        Raises:
            errors.ObjectConflictError: the workload is not what it was when it was decided about.
        """
        while True:
            wanted = write.after
            try:
                write.before = await workloadwrites.write_account(self._client, write.before, wanted)
                write.before = await workloadwrites.write_status(self._client, write.before, wanted)
                self._observe(write.before)
            except errors.ObjectConflictError:
                place = write.before.metadata
                fresh = await self._client.get(resources.WORKLOADS, place.name, namespace=place.namespace)
                self._observe(fresh)
                again = workloadwrites.rebased(write.before, write.after, onto=fresh)
                if again is None:
                    raise
                write.before, write.after = fresh, again
                continue
            if write.after is wanted:
                return


class _Write:
    """A status on its way: ``before`` is what is stored, ``after`` what it is to be by the latest decision."""

    __slots__ = ("after", "before")

    def __init__(self, before: workload.Workload, after: workload.Workload) -> None:
        self.before = before
        self.after = after
