"""Requests for one Job in a queue: components reconcile from caches, and write events with the changes they report."""

import collections
from collections.abc import Sequence
from typing import Any, cast

import pytest

from drachma.api import event
from drachma.client import Client, target, transactions
from drachma.server import inprocess
from tests.scenarios import queues

_READS = ("get", "get_document")
_WRITES = ("create_document", "patch", "patch_document", "patch_stored", "update", "update_document", "delete")


class _CountingClient:
    """Counts the requests about single objects that reach a client, by call and kind."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.requests: collections.Counter[tuple[str, str]] = collections.Counter()

    async def commit(self, changes: Sequence[transactions.Change]) -> Sequence[Any]:
        for change in changes:
            kind = "Event" if isinstance(change, transactions.Create) else target.of(cast(Any, change).kind).kind
            self.requests[type(change).__name__, kind] += 1
        return await cast(transactions.Transactions, self._client).commit(changes)

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
            ("CreateDocument", "Workload"): 1,
            ("PatchStored", "Workload"): 2,
            ("PatchStored", "Job"): 1,
            ("Create", "Event"): 4,
            ("patch_stored", "Workload"): 1,
            ("PatchStored", "LocalQueue"): 1,
            ("PatchStored", "ClusterQueue"): 1,
        }


async def test_a_job_takes_few_requests_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are part of the commits that they report, and no component reads what its cache has."""
    requests: list[str] = []

    def counted(name: str, method: Any) -> Any:
        def count(*arguments: Any) -> Any:
            requests.append(name)
            return method(*arguments)

        return count

    for name in ("get", "write", "commit"):
        monkeypatch.setattr(inprocess.InProcess, name, counted(name, getattr(inprocess.InProcess, name)))
    async with queues.queues() as cluster:
        await cluster.create_queue(cpu=2)
        requests.clear()
        await cluster.create_job("train", seconds=600)
        assert await cluster.phases() == {"Running": 1}
        assert requests.count("get") == 0
        assert len(requests) <= 12
        reasons = {each.reason for each in await cluster.all_of(event.Event)}
        assert reasons >= {"Suspended", "CreatedWorkload", "QuotaReserved", "Admitted", "Started", "SuccessfulCreate"}
        assert reasons >= {"Resumed", "Scheduled"}
