"""One table of the inventory, read from a server."""

import pytest

from drachma import errors
from drachma.cli.inventory import table, view
from drachma.cli.options import TableFormat
from drachma.process import embedded
from drachma.store import memory


def a_view(name: str) -> view.View:
    kind, fields = view.find_table(name)
    return view.View(name, kind, table.Filter(), fields=fields, namespace="default", selector="")


async def test_queues_of_a_server_without_queueing() -> None:
    async with embedded.server(memory.MemoryStore()) as server:
        with pytest.raises(errors.ObjectNotFoundError) as refused:
            await view.read_rows(server.client, a_view("queues"), TableFormat.TABLE)
    want = "queues: the server does not serve clusterqueues.kueue.x-k8s.io; drachma up --queueing does"
    assert str(refused.value) == want
