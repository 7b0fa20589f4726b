"""Metrics of a process on a port of the loopback address."""

import contextlib
import socket
from collections.abc import AsyncIterator

import prometheus_client
from aiohttp import web

from drachma import errors
from drachma.listening import webserver

_HOST = "127.0.0.1"


@contextlib.asynccontextmanager
async def serving(port: int, registry: prometheus_client.CollectorRegistry) -> AsyncIterator[None]:
    """Serve ``/metrics`` while the block lasts; nothing is served on port 0.

    Raises:
        errors.InvalidValueError: the port is taken.
    """
    if not port:
        yield
        return

    async def metrics(_request: web.Request) -> web.Response:
        content = prometheus_client.generate_latest(registry)
        return web.Response(body=content, headers={"Content-Type": prometheus_client.CONTENT_TYPE_LATEST})

    try:
        opened = socket.create_server((_HOST, port))
    except OSError as error:
        raise errors.InvalidValueError(f"address {_HOST}:{port}: cannot listen: {error.strerror}") from error
    application = web.Application()
    application.add_routes([web.get("/metrics", metrics), web.get("/", metrics)])
    async with webserver.serving(application, opened):
        yield
