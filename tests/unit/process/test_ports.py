"""Every kind of port under more half-open connections than the process has room for: the API server still answers."""

import asyncio
import contextlib
import pathlib
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any, cast

import prometheus_client
import pytest

from drachma.listening import addresses, statuspage, webserver
from drachma.listening import budget as budgets
from drachma.listening.limits import Limits
from drachma.node.endpoint import certificate
from drachma.node.endpoint import server as nodeendpoint
from drachma.node.registration import addresses as node_addresses
from drachma.process import statusendpoint, webhookendpoint
from drachma.runtime import clock
from drachma.server.access import certificates
from drachma.server.wire import serving
from tests.unit.server import client

LIMITS = Limits(connections=16, loopback_percent=75)
"""Small limits: clients of these tests are on this machine, so they have 12 connections."""

HALF_OPEN = 40


class _Server(serving.Server):
    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        yield


@pytest.fixture(autouse=True)
def _small_budget() -> Iterator[None]:
    before = budgets.PROCESS.limits
    budgets.PROCESS.limit(LIMITS)
    yield
    budgets.PROCESS.limit(before)


@contextlib.asynccontextmanager
async def _running(work: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def _port(kind: str, api_port: int, files: certificates.Files) -> AsyncIterator[int]:
    """Open a port of a kind; yield its number."""
    match kind:
        case "api":
            yield api_port
        case "node":
            opened = socket.create_server(("127.0.0.1", 0))
            made = certificate.make("n", address="127.0.0.1", client_authority=b"", now=datetime.now(UTC))
            nodes, places = cast(nodeendpoint.ServedNodes, None), node_addresses.Addresses({"n": opened})
            endpoint = nodeendpoint.Endpoint(places, nodes, context=made.context, clock=clock.SystemClock())
            async with _running(endpoint.run()):
                yield opened.getsockname()[1]
        case "webhooks":
            webhooks = webhookendpoint.WebhookEndpoint(addresses.Address("127.0.0.1", 0), files)
            async with _running(webhooks.serve(cast(Any, _Reviews()), clock=clock.SystemClock())):
                yield webhooks.address.port
        case "metrics":
            with socket.create_server(("127.0.0.1", 0)) as probe:
                port = probe.getsockname()[1]
            async with statusendpoint.serve_locally(port, tuple, prometheus_client.CollectorRegistry()):
                yield port
        case "driver":
            page = statuspage.application(tuple, prometheus_client.CollectorRegistry())
            opened = statuspage.listen_everywhere(0)
            async with webserver.serving(page, opened):
                yield opened.getsockname()[1]


class _Reviews:
    def mutate(self, *_: object) -> None:
        raise AssertionError("no review is sent")

    validate = mutate


@pytest.mark.parametrize("kind", ["api", "node", "webhooks", "metrics", "driver"])
async def test_half_open_connections_leave_room_for_the_api_server(kind: str, tmp_path: pathlib.Path) -> None:
    started = await client.start()
    opened, bound = addresses.bind(addresses.Address("127.0.0.1", 0))
    files = certificates.ensure(tmp_path / "pki", hosts=bound.hosts, now=datetime.now(UTC))
    server = _Server(started.app, files)
    task = asyncio.create_task(server.serve(sockets=[opened]))
    writers: list[asyncio.StreamWriter] = []
    try:
        async with asyncio.timeout(30), _port(kind, bound.port, files) as port:
            while not server.started:
                await asyncio.sleep(0)
            readers = []
            for _ in range(HALF_OPEN):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                readers.append(reader)
                writers.append(writer)
            trust = ssl.create_default_context(cafile=str(files.authority))
            reader, writer = await asyncio.open_connection("127.0.0.1", bound.port, ssl=trust)
            writers.append(writer)
            writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            # The oldest were ended to make room, and no more are open than the share of this machine.
            for reader in readers[: HALF_OPEN - 12]:
                with contextlib.suppress(OSError):
                    assert await reader.read() == b""
            assert len(budgets.PROCESS) <= 12
    finally:
        for writer in writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        server.should_exit = True
        await task
        opened.close()
        await started.store.close()
