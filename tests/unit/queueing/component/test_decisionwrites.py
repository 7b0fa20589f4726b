"""Decisions on their way to the API server."""

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

import pytest

from drachma.api import meta
from drachma.client import Client, protocol, wire
from drachma.queueing.component import workloadwrites
from drachma.queueing.component.caches import Source
from drachma.queueing.component.decisionwrites import DecisionWrites
from drachma.queueing.component.workloadwrites import WorkloadLocks
from drachma.queueing.kinds import workload
from drachma.runtime import events
from drachma.runtime.cache import Cache

_AT_ONCE = 64


class _Workloads:
    """A cache of workloads."""

    def __init__(self, count: int) -> None:
        self.cache: Cache[workload.Workload] = Cache()
        for number in range(count):
            self.cache.put(workload.Workload(metadata=meta.ObjectMeta(name=f"w{number}", namespace="ns")))

    def observe(self, stored: Any) -> workload.Workload:
        self.cache.put(stored.object)
        wl: workload.Workload = stored.object
        return wl


class _Server:
    """Writes what it is let."""

    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(0)
        self.written: list[str] = []

    async def write(self, _client: Any, _before: workload.Workload, after: workload.Workload) -> Any:
        await self.turns.acquire()
        self.written.append(after.metadata.name)
        return protocol.StoredObject(after, wire.BodySource(b"{}"))


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_who_decides_waits_while_more_is_decided_than_can_be_written_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, workloads = _Server(), _Workloads(_AT_ONCE + 1)
    monkeypatch.setattr(workloadwrites, "write_status", server.write)
    tasks: set[asyncio.Task[None]] = set()

    def spawn(work: Coroutine[Any, Any, None], *, name: str) -> None:
        tasks.add(asyncio.create_task(work, name=name))

    writes = DecisionWrites(
        cast(Client, None),
        cast(Source[workload.Workload], workloads),
        recorder=cast(events.Recorder, None),
        locks=WorkloadLocks(),
        observe=workloads.observe,
        sleep=asyncio.sleep,
        spawn=spawn,
        on_written=lambda _: None,
        on_refused=lambda _key, _pause: None,
    )
    await asyncio.wait_for(writes.catch_up(), 1)
    for each in workloads.cache:
        writes.put(f"ns/{each.metadata.name}", each)
    waiting = asyncio.create_task(writes.catch_up())

    server.turns.release()
    await _settle()
    assert (len(server.written), waiting.done()) == (1, False)
    server.turns.release()
    await _settle()
    assert (len(server.written), waiting.done()) == (2, True)
    assert len(list(writes.under_way())) == _AT_ONCE - 1

    for task in tasks:
        task.cancel()
