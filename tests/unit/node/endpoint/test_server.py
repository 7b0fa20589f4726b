"""Requests that a node's endpoint refuses before it reads them."""

import asyncio
import contextlib
import datetime as dt
import pathlib
import socket
import ssl
import types
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import prometheus_client
import pytest

from drachma.api import meta, pod
from drachma.node import agentmetrics
from drachma.node.endpoint import access, certificate, server
from drachma.node.registration import addresses
from drachma.runtime import clock
from drachma.server.access import certificates
from drachma.testing import manualclock


class Reviews:
    """An API server that knows one token, and lets its user do everything."""

    async def create_document(self, kind: Any, document: Mapping[str, Any]) -> Mapping[str, Any]:
        if document["kind"] == "TokenReview":
            return {"status": {"authenticated": document["spec"]["token"] == "good", "user": {"username": "ann"}}}
        return {"status": {"allowed": True}}


class Machine:
    """A node with a pod, at every address."""

    name = "n1"
    client: Any = Reviews()

    def at(self, address: str) -> "Machine":
        return self

    @property
    def pods(self) -> "Machine":
        return self

    @property
    def metrics(self) -> agentmetrics.NodeMetrics:
        metrics = agentmetrics.AgentMetrics(prometheus_client.CollectorRegistry())
        metrics.node_metrics("n2").count_start_error("container", "ErrImagePull")
        metrics.node_metrics(self.name).count_start_error("init_container", "ErrImagePull")
        return metrics.node_metrics(self.name)

    def find(self, namespace: str, name: str) -> Any:
        return types.SimpleNamespace(pod=pod.Pod(metadata=meta.ObjectMeta(name=name)))

    def all(self) -> list[Any]:
        return []


@contextlib.asynccontextmanager
async def _asked(folder: pathlib.Path) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    opened = socket.create_server(("127.0.0.1", 0))
    files = certificates.ensure(folder, hosts=["127.0.0.1"], now=dt.datetime.now(dt.UTC))
    serving = certificate.load(files.certificate, files.key, client_authority=files.authority.read_bytes())
    endpoint = server.Endpoint(
        addresses.Addresses({Machine.name: opened}), Machine(), context=serving.context, clock=clock.SystemClock()
    )
    context = ssl.create_default_context(cafile=str(files.authority))
    task = asyncio.create_task(endpoint.run())
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
            yield f"https://127.0.0.1:{opened.getsockname()[1]}", session
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_two_authorization_headers_are_refused(tmp_path: pathlib.Path) -> None:
    async with _asked(tmp_path) as (url, session):
        for tokens, want in ((["good"], 200), (["good", "bad"], 400), (["bad", "good"], 400), (["bad"], 401)):
            headers = [("Authorization", f"Bearer {token}") for token in tokens]
            async with session.get(f"{url}/healthz", headers=headers) as answer:
                assert answer.status == want


async def test_metrics_are_those_of_the_node(tmp_path: pathlib.Path) -> None:
    async with (
        _asked(tmp_path) as (url, session),
        session.get(f"{url}/metrics", headers={"Authorization": "Bearer good"}) as answer,
    ):
        text = await answer.text()
    lines = [line for line in text.splitlines() if line.startswith("kubelet_started_containers_errors_total{")]
    assert lines == ['kubelet_started_containers_errors_total{code="ErrImagePull",container_type="init_container"} 1.0']


@pytest.mark.parametrize(
    ("origin", "want"),
    [
        pytest.param("https://page.example.com", 403, id="another-page"),
        pytest.param("", 101, id="no-browser"),
    ],
)
async def test_streams_are_not_for_pages_of_other_servers(tmp_path: pathlib.Path, origin: str, want: int) -> None:
    headers = {"Authorization": "Bearer good", "Connection": "Upgrade", "Upgrade": "websocket"}
    headers |= {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    headers |= {"Sec-WebSocket-Protocol": "SPDY/3.1+portforward.k8s.io", **({"Origin": origin} if origin else {})}
    async with (
        _asked(tmp_path) as (url, session),
        session.get(f"{url}/portForward/default/p", headers=headers) as answer,
    ):
        assert answer.status == want


async def test_a_certificate_expires_on_an_open_connection() -> None:
    time = manualclock.ManualClock()
    own = access.Access(time)
    end = (time.utc() + dt.timedelta(hours=1)).strftime("%b %d %H:%M:%S %Y GMT")
    client_certificate = {"subject": ((("commonName", "ann"),),), "notAfter": end}
    user = await own.user_of(Machine.client, client_certificate, "")
    assert user is not None
    assert user.name == "ann"
    await time.advance(3601)
    assert await own.user_of(Machine.client, client_certificate, "") is None


async def test_streams_over_plain_spdy_are_refused(tmp_path: pathlib.Path) -> None:
    headers = {"Authorization": "Bearer good", "Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
    headers |= {"X-Stream-Protocol-Version": "portforward.k8s.io"}
    async with (
        _asked(tmp_path) as (url, session),
        session.post(f"{url}/portForward/default/p", headers=headers) as answer,
    ):
        assert answer.status == 400
