"""Components decide on their caches: a Job that passes a queue and runs is never read from the server."""

from typing import Any, cast

from drachma.client import Client
from tests.scenarios import queues


class ReadCounter:
    """A client that notes the reads of single objects."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.reads: list[str] = []

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        if name not in ("get", "get_document"):
            return call

        def read(kind: Any, *arguments: Any, **options: Any) -> Any:
            self.reads.append(f"{name} {getattr(kind, 'plural', getattr(kind, '__name__', kind))}")
            return call(kind, *arguments, **options)

        return read


async def test_a_job_that_passes_a_queue_and_runs_is_never_read() -> None:
    counters: list[ReadCounter] = []

    def count(client: Client) -> Client:
        counters.append(ReadCounter(client))
        return cast(Client, counters[-1])

    async with queues.queues(wrap=count) as cluster:
        await cluster.create_queue(cpu=8)
        await cluster.advance(1)
        for counter in counters:
            counter.reads.clear()
        await cluster.create_job("train", seconds=600)
        await cluster.advance(1)
        assert await cluster.phases() == {"Running": 1}
        assert [read for counter in counters for read in counter.reads] == []
        await cluster.create_job("claim", template="one-gpu", queue="", seconds=600)
        await cluster.advance(1)
        assert any(counter.reads for counter in counters), (
            "node agents read claims before they prepare them, as kubelets do"
        )
