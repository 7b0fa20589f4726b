"""A webhook on loopback, over TLS, that answers what a test tells it to, however wrong."""

import asyncio
import base64
import contextlib
import json
import pathlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from drachma.server.access import certificates

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WebhookServer:
    """``reviews`` has what it was asked; ``responses`` what it answers, by path."""

    def __init__(self, bundle: str) -> None:
        self.bundle = bundle
        self.url = ""
        self.reviews: list[dict[str, Any]] = []
        self.responses: dict[str, dict[str, Any] | Handler] = {}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        review = await request.json()
        self.reviews.append(review)
        response = self.responses[request.path]
        if callable(response):
            return await response(request)
        answer = {"uid": review["request"]["uid"], "allowed": True, **response}
        if "patch" in answer:
            answer["patch"] = base64.b64encode(json.dumps(answer["patch"]).encode()).decode()
            answer.setdefault("patchType", "JSONPatch")
        return web.json_response({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": answer})

    def client(self, path: str) -> dict[str, Any]:
        """The client configuration of what answers under a path."""
        return {"url": self.url + path, "caBundle": self.bundle}


@contextlib.asynccontextmanager
async def running(folder: pathlib.Path) -> AsyncIterator[WebhookServer]:
    """A webhook server with an authority of its own."""
    files = certificates.ensure(folder, hosts=["127.0.0.1", "localhost", "s.default.svc"], now=datetime.now(UTC))
    server = WebhookServer(base64.b64encode(files.authority.read_bytes()).decode())
    application = web.Application(client_max_size=64 * 1024 * 1024)
    application.router.add_post("/{path:.*}", server.handle)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    assert site._server is not None, "it has just been started"
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    server.url = f"https://127.0.0.1:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


async def hang(_request: web.Request) -> web.StreamResponse:
    """Never answers."""
    await asyncio.Event().wait()
    raise AssertionError("nobody sets the event")


async def flood(request: web.Request) -> web.StreamResponse:
    """Answers 100 MB, for who reads them."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        for _ in range(100):
            await response.write(b" " * 1024 * 1024)
    return response
