"""Writes of admission decisions to the API server.

Writes of different workloads run in parallel, writes of one workload in sequence, and of several decisions about it
only the last is written. A decision that cannot be written is refused: at once if the workload has changed, otherwise
with a growing pause after the workload is read back. Until then the decision counts, because a write without an answer
may have been stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, Final, Protocol

from drachma import errors
from drachma.client import Client
from drachma.client.protocol import Document
from drachma.queueing.component import resources, workloadwrites
from drachma.queueing.component.caches import Source
from drachma.queueing.component.workloadwrites import StoredWorkload, WorkloadLocks
from drachma.queueing.kinds import workload
from drachma.runtime import defects, events, resourceversion

_AT_ONCE: Final = 64
"""Maximum number of parallel writes."""

_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 60.0

_log = logging.getLogger(__name__)


class Spawn(Protocol):
    """Runs a coroutine in the background."""

    def __call__(self, work: Coroutine[Any, Any, None], *, name: str) -> None: ...


class Written(Protocol):
    """Callback after all decisions about a workload are written."""

    def __call__(self, key: str, /) -> None: ...


class Refused(Protocol):
    """Callback after a decision cannot be written, with the seconds to wait before it is tried again."""

    def __call__(self, key: str, pause: float, /) -> None: ...


class DecisionWrites:
    """All writes that are under way."""

    def __init__(
        self,
        client: Client,
        workloads: Source[workload.Workload],
        *,
        recorder: events.Recorder,
        locks: WorkloadLocks,
        observe: Callable[[StoredWorkload | Document], workload.Workload],
        sleep: Callable[[float], Awaitable[None]],
        spawn: Spawn,
        on_written: Written,
        on_refused: Refused,
    ) -> None:
        """``observe`` takes a stored workload into ``workloads`` and returns its typed form."""
        self._client: Final = client
        self._recorder: Final = recorder
        self._workloads: Final = workloads
        self._locks: Final = locks
        self._observe: Final = observe
        self._sleep: Final = sleep
        self._spawn: Final = spawn
        self._written: Final = on_written
        self._refused: Final = on_refused
        self._room: Final = asyncio.Semaphore(_AT_ONCE)
        self._progress: Final = asyncio.Event()
        self._writes: Final[dict[str, _Write]] = {}
        self._refusals: Final[dict[str, int]] = {}
        """Number of consecutive decisions about an unchanged workload that could not be written."""

    def is_under_way(self, key: str) -> bool:
        """Return True if a decision about a workload is not written yet."""
        return key in self._writes

    def under_way(self) -> Iterator[workload.Workload]:
        """Yield workloads as they will be after their decisions are written."""
        return (write.after for write in self._writes.values())

    async def catch_up(self) -> None:
        """Wait while more decisions are pending than can be written in parallel."""
        while len(self._writes) >= _AT_ONCE:
            self._progress.clear()
            await self._progress.wait()

    def forget(self, key: str) -> None:
        """Forget the refusals of a workload that is gone."""
        self._refusals.pop(key, None)

    def put(self, key: str, after: workload.Workload) -> None:
        """Write a decision in the background."""
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
        self._spawn(self._process(key), name=f"status of {key}")

    async def _process(self, key: str) -> None:
        write = self._writes[key]
        try:
            async with self._room, self._locks.hold(key):
                await self._write_latest(write)
        except (errors.ObjectConflictError, errors.ObjectNotFoundError) as error:
            _log.debug("workload %s: the decision was not written: %s", key, error)
            self._end(key)
            self._refused(key, 0.0)
        except errors.DrachmaError as error:
            _log.warning("workload %s: the decision was not written: %s", key, error)
            await self._read_back(key, write)
            self._end(key)
            self._refused(key, self._pause(key))
        except Exception:
            # Without this the workload would count as being written for ever.
            defects.PROCESS.report("admission", f"workload {key}: the decision was not written")
            self._end(key)
            self._refused(key, self._pause(key))
        else:
            self._end(key)
            self._refusals.pop(key, None)
            self._written(key)

    async def _read_back(self, key: str, write: _Write) -> None:
        """Observe the stored workload after a write without an answer, which may have been stored.

        The decision counts until a server has answered, so that no quota is given away twice.
        """
        while True:
            try:
                await self._read(write.before)
                return
            except errors.ObjectNotFoundError:
                return
            except errors.DrachmaError as error:
                _log.debug("workload %s: could not be read back: %s", key, error)
            await self._sleep(self._pause(key))

    def _end(self, key: str) -> None:
        del self._writes[key]
        self._progress.set()

    def _pause(self, key: str) -> float:
        refusals = self._refusals[key] = self._refusals.get(key, 0) + 1
        return float(min(_FIRST_PAUSE_SECONDS * 2 ** min(refusals - 1, 30), _LONGEST_PAUSE_SECONDS))

    async def _write_latest(self, write: _Write) -> None:
        """Write the decision, and later decisions that arrive meanwhile.

        Raises:
            errors.ObjectConflictError: the workload has changed so that the decision no longer holds.
        """
        cached = self._newer(write.before)
        if cached is not None and not write.rebase(cached):
            raise errors.ObjectConflictError({"message": "the workload has changed since the decision"})
        while True:
            decided = write.after
            try:
                await self._write(write, decided)
            except errors.ObjectConflictError:
                if not write.rebase(await self._read(write.before)):
                    raise
                continue
            if write.after is decided:
                return

    async def _write(self, write: _Write, decided: workload.Workload) -> None:
        for write_part in (workloadwrites.write_account, workloadwrites.write_status):
            written_workload = await write_part(self._recorder, write.before, decided)
            if written_workload is not None:
                write.before = self._observe(written_workload)

    def _newer(self, wl: workload.Workload) -> workload.Workload | None:
        """Return the cached workload if it is newer, as it is after a write of this process."""
        metadata = wl.metadata
        cached = self._workloads.cache.get(metadata.name, namespace=metadata.namespace)
        if cached is None:
            return None
        version = resourceversion.number(cached.metadata.resource_version)
        return cached if version > resourceversion.number(metadata.resource_version) else None

    async def _read(self, wl: workload.Workload) -> workload.Workload:
        """Read a workload from the API server and observe it."""
        metadata = wl.metadata
        document = await self._client.get_document(resources.WORKLOADS, metadata.name, namespace=metadata.namespace)
        return self._observe(document)


class _Write:
    """A decision to write: ``before`` is the stored workload, ``after`` the latest decision."""

    __slots__ = ("after", "before")

    def __init__(self, before: workload.Workload, after: workload.Workload) -> None:
        self.before = before
        self.after = after

    def rebase(self, wl: workload.Workload) -> bool:
        """Apply the decision to a newer version. Return False if it does not hold for that version."""
        after = workloadwrites.rebase(self.before, self.after, onto=wl)
        if after is None:
            return False
        self.before, self.after = wl, after
        return True
