"""Requests that queueing makes for one Job: it reconciles from caches, and reads nothing again."""

import collections
from typing import Any, cast

from drachma.client import Client, target
from tests.scenarios import queues

_READS = ("get", "get_document")
_WRITES = ("create_document", "patch", "patch_document", "patch_stored", "update", "update_document", "delete")


class _CountingClient:
    """Counts the requests about single objects that reach a client, by call and kind."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.requests: collections.Counter[tuple[str, str]] = collections.Counter()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        if name not in _READS + _WRITES:
            return call

        async def counted(kind: Any, *arguments: Any, **options: Any) -> Any:
            self.requests[name, target.of(kind).kind] += 1
            return await call(kind, *arguments, **options)

        return counted


async def test_a_job_through_a_queue_costs_no_reads() -> None:
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=4)
        await cluster.kill("queueing")
        client = _CountingClient(cluster.client)
        cluster.launch_queueing_on(cast(Client, client))
        await cluster.advance(2)
        client.requests.clear()

        await cluster.create_job("train", seconds=5)
        await cluster.advance(2)
        assert await cluster.phases() == {"Running": 1}

        reads = {key: count for key, count in client.requests.items() if key[0] in _READS}
        assert reads == {}
        assert client.requests == {
            ("create_document", "Workload"): 1,
            ("patch_stored", "Workload"): 3,
            ("patch_document", "Job"): 1,
            ("patch_document", "LocalQueue"): 1,
            ("patch_document", "ClusterQueue"): 1,
        }
