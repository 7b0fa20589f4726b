"""One table of the inventory, read from a server."""

import asyncio

import pytest

from drachma import errors
from drachma.cli.inventory import table, view
from drachma.cli.options import TableFormat
from drachma.process import embedded
from drachma.store import memory
from tests import patience

WITHOUT_QUEUES = "queues: the server does not serve clusterqueues.kueue.x-k8s.io; drachma up --queueing does"


def a_view(name: str) -> view.View:
    kind, fields = view.find_table(name)
    return view.View(name, kind, table.Filter(), fields=fields, namespace="default", selector="")


async def test_queues_of_a_server_without_queueing() -> None:
    async with embedded.server(memory.MemoryStore()) as server:
        with pytest.raises(errors.ObjectNotFoundError) as refused:
            await view.read_rows(server.client, a_view("queues"), TableFormat.TABLE)
    assert str(refused.value) == WITHOUT_QUEUES


async def test_a_watch_of_queues_of_a_server_without_queueing() -> None:
    async with embedded.server(memory.MemoryStore()) as server:
        with pytest.raises(errors.ObjectNotFoundError) as refused:
            async with asyncio.timeout(patience.SECONDS):
                await view.watch(server.client, a_view("queues"), TableFormat.TABLE)
    assert str(refused.value) == WITHOUT_QUEUES
