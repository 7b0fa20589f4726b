"""``drachma play``: when it takes its control plane to have come to rest."""

import asyncio
import time

import pytest

from drachma.cli import playground
from drachma.process import embedded
from drachma.runtime import Informers
from drachma.store import memory
from drachma.testing import claim


async def test_a_process_that_stands_still_is_not_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playground, "_SILENT_SECONDS", 0.05)
    monkeypatch.setattr(playground, "_QUIET_SECONDS", 0.05)
    async with embedded.server(memory.MemoryStore()) as server, Informers(server.client) as informers:
        watched = playground._Watched(informers, has_workloads=False, runs_pods=False, has_queues=False, goal=None)
        await informers.wait_synced()

        async def seen_at_rest() -> bool:
            assert await watched.settle(60)
            return watched.claim("late", namespace="default") is not None

        resting = asyncio.create_task(seen_at_rest())
        for _ in range(10):
            # The machine has others to serve, and all of this process waits.
            time.sleep(0.02)
            await asyncio.sleep(0)
        await server.client.create(claim("late").request("gpu", device_class="gpu").build())
        assert await resting
