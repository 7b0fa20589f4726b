"""A driver's process without the process: what it tells over HTTP, and controllers of pools that belong to no node."""

import asyncio
import logging
import pathlib
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from drachma import driver, errors
from drachma.api import lease as leases
from drachma.api import node, resourceslice
from drachma.client import Client
from drachma.driver import hosting
from drachma.driver.instance import Place
from drachma.process import embedded
from drachma.runtime import lease
from drachma.store import memory

SECONDS = 60.0
ELECTION = lease.LeaseName("kube-system", "fabric.example.com")


class Fabric(driver.Driver):
    """Devices that some nodes reach, and others that all of them do; it serves nodes, too."""

    name = "fabric.example.com"

    async def pools(self) -> Iterable[driver.Pool]:
        return [driver.pool(self.node, [driver.device("local-0")])]

    async def network_pools(self) -> Iterable[driver.Pool]:
        return [
            driver.pool("rack", [driver.device("gpu-0"), driver.device("gpu-1")]).on_nodes({"rack": "r1"}),
            driver.pool("shelf", [driver.device("disk-0")]).on_all_nodes(),
        ]


@asynccontextmanager
async def _client() -> AsyncIterator[Client]:
    async with embedded.server(memory.MemoryStore()) as server:
        document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker"}}
        await server.client.create_document(node.Node, document)
        yield server.client


@asynccontextmanager
async def _running(work: Coroutine[Any, Any, None], caplog: pytest.LogCaptureFixture) -> AsyncIterator[str]:
    """Something that serves, and its URL once it does."""
    caplog.clear()
    caplog.set_level(logging.INFO, logger=hosting.__name__)
    task = asyncio.create_task(work)
    try:
        async with asyncio.timeout(SECONDS):
            while not (ports := [each.args for each in caplog.records if "on port" in each.msg]):
                assert not task.done(), task.exception()
                await asyncio.sleep(0.01)
        assert isinstance(ports[0], tuple)
        yield f"http://127.0.0.1:{ports[0][0]}"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _get(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def _until_ready(url: str) -> None:
    async with asyncio.timeout(SECONDS):
        while (await _get(f"{url}/readyz"))[0] != 200:
            await asyncio.sleep(0.01)


def _controller(client: Client) -> Coroutine[Any, Any, None]:
    return hosting.serve_controller(Fabric, client, hosting.Options(http_port=0), election=ELECTION)


async def _slices(client: Client) -> dict[str, resourceslice.ResourceSlice]:
    return {each.spec.pool.name: each for each in (await client.list(resourceslice.ResourceSlice)).items}


async def test_a_controller_publishes_pools_of_a_network(caplog: pytest.LogCaptureFixture) -> None:
    async with _client() as client, _running(_controller(client), caplog) as url:
        async with asyncio.timeout(SECONDS):
            while len(slices := await _slices(client)) < 2:
                await asyncio.sleep(0.01)
        rack, shelf = slices["rack"].spec, slices["shelf"].spec
        assert rack.node_selector is not None
        ((label,),) = (term.match_expressions for term in rack.node_selector.node_selector_terms)
        assert (label.key, label.operator, label.values) == ("rack", "In", ("r1",))
        assert (shelf.all_nodes, shelf.node_name, rack.node_name) == (True, None, None)
        assert [each.name for each in rack.devices] == ["gpu-0", "gpu-1"]
        assert not slices["rack"].metadata.owner_references
        await _until_ready(url)
        held = await client.get(leases.Lease, ELECTION.name, namespace=ELECTION.namespace)
        assert held.spec.holder_identity
        assert await _get(f"{url}/healthz") == (200, "ok")
        assert "# TYPE" in (await _get(f"{url}/metrics"))[1]


async def test_who_waits_for_the_lease_is_ready_and_publishes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with _client() as client:
        spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 3600, "renewTime": "2026-01-01T00:00:00.000000Z"}
        metadata = {"name": ELECTION.name, "namespace": ELECTION.namespace}
        document = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        await client.create_document(leases.Lease, document)
        async with _running(_controller(client), caplog) as url:
            assert (await _get(f"{url}/readyz"))[0] == 200
            assert not await _slices(client)


async def test_a_node_is_ready_when_an_agent_has_taken_the_driver(caplog: pytest.LogCaptureFixture) -> None:
    with tempfile.TemporaryDirectory(prefix="h") as name:
        folder = pathlib.Path(name)
        place = Place(node="worker", plugins=folder / "p" / Fabric.name, registry=folder / "r", cdi=folder / "c")
        async with _client() as client:
            work = hosting.serve_node(Fabric, client, hosting.Options(http_port=0), place=place)
            async with _running(work, caplog) as url:
                async with asyncio.timeout(SECONDS):
                    while not await _slices(client):
                        await asyncio.sleep(0.01)
                code, text = await _get(f"{url}/readyz")
                assert (code, text) == (
                    503,
                    "[-]slices are not visible yet, or no node agent has taken the driver\nreadyz check failed\n",
                )


async def test_a_port_that_is_taken_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with _client() as client, _running(_controller(client), caplog) as url:
        port = int(url.rpartition(":")[2])
        options = hosting.Options(http_port=port)
        with pytest.raises(errors.DriverError, match=f"port {port}: "):
            await hosting.serve_controller(Fabric, client, options, election=ELECTION)


def test_a_controller_has_no_state() -> None:
    with pytest.raises(errors.DriverError, match="does not run on a node"):
        _ = Fabric().state_directory
