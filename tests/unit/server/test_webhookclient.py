"""Connections to webhooks: kept for the next call, while it is the same authority that speaks for the other end."""

import base64
import pathlib
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web

from drachma.server import webhookclient
from tests.unit.server.admission import webhookserver
from tests.unit.server.admission.webhookserver import WebhookServer


class Listener:
    """Counts connections and requests of a webhook server; closes some connections when a request comes on them."""

    def __init__(self) -> None:
        self.connections: list[object] = []
        self.requests = 0
        self.is_closing = False

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        assert request.transport is not None, "whoever asks is connected"
        if request.transport in self.connections:
            if self.is_closing:
                request.transport.abort()
        else:
            self.connections.append(request.transport)
        return web.Response(body=b"heard")


@pytest_asyncio.fixture
async def webhook(tmp_path: pathlib.Path) -> AsyncIterator[WebhookServer]:
    async with webhookserver.running(tmp_path) as server:
        yield server


@pytest_asyncio.fixture
async def caller() -> AsyncIterator[webhookclient.WebhookClient]:
    made = webhookclient.WebhookClient()
    yield made
    await made.close()


async def call(caller: webhookclient.WebhookClient, webhook: WebhookServer, *, bundle: str = "") -> bytes:
    target = webhookclient.Target(f"{webhook.url}/x", bundle or webhook.bundle)
    return await caller.post(target, b'{"request":{"uid":"u"}}', seconds=60)


async def test_a_connection_is_kept(caller: webhookclient.WebhookClient, webhook: WebhookServer) -> None:
    listener = Listener()
    webhook.responses["/x"] = listener.handle
    for _ in range(3):
        assert await call(caller, webhook) == b"heard"
    assert (len(listener.connections), listener.requests) == (1, 3)


async def test_not_for_another_authority(
    caller: webhookclient.WebhookClient, webhook: WebhookServer, tmp_path: pathlib.Path
) -> None:
    listener = Listener()
    webhook.responses["/x"] = listener.handle
    await call(caller, webhook)
    async with webhookserver.running(tmp_path / "other") as other:
        with pytest.raises(webhookclient.CallError, match="signed by unknown authority"):
            await call(caller, webhook, bundle=other.bundle)
        both = b"".join(map(base64.b64decode, (webhook.bundle, other.bundle)))
        assert await call(caller, webhook, bundle=base64.b64encode(both).decode()) == b"heard"
    assert (len(listener.connections), listener.requests) == (2, 2)


async def test_one_that_the_webhook_closes_is_made_anew(
    caller: webhookclient.WebhookClient, webhook: WebhookServer
) -> None:
    listener = Listener()
    listener.is_closing = True
    webhook.responses["/x"] = listener.handle
    for _ in range(2):
        assert await call(caller, webhook) == b"heard"
    assert (len(listener.connections), listener.requests) == (2, 3)


async def test_what_fails_on_a_new_connection_has_failed(
    caller: webhookclient.WebhookClient, webhook: WebhookServer
) -> None:
    calls: list[web.Request] = []

    async def abort(request: web.Request) -> web.StreamResponse:
        calls.append(request)
        assert request.transport is not None, "whoever asks is connected"
        request.transport.abort()
        return web.Response()

    webhook.responses["/x"] = abort
    with pytest.raises(webhookclient.CallError):
        await call(caller, webhook)
    assert len(calls) == 1


async def test_connections_to_few_places_are_kept(
    caller: webhookclient.WebhookClient, webhook: WebhookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhookclient, "LINES", 1)
    listener = Listener()
    webhook.responses["/x"] = listener.handle
    twice = base64.b64encode(base64.b64decode(webhook.bundle) * 2).decode()
    for bundle in (webhook.bundle, twice, webhook.bundle):
        assert await call(caller, webhook, bundle=bundle) == b"heard"
    assert len(listener.connections) == 3
