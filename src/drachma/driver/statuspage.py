"""Status page of a driver's process: liveness, readiness and metrics."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus

import prometheus_client
from aiohttp import web

from drachma import errors
from drachma.listening import webserver


@contextlib.asynccontextmanager
async def serving(
    port: int, *, is_ready: Callable[[], bool], registry: prometheus_client.CollectorRegistry
) -> AsyncIterator[int]:
    """``/healthz``, ``/readyz`` and ``/metrics`` on a port of all addresses; any free one for 0. Yields the port.

    Raises:
        errors.DriverError: the port cannot be had.
    """

    async def healthz(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_request: web.Request) -> web.Response:
        if is_ready():
            return web.Response(text="ok")
        return web.Response(
            status=HTTPStatus.SERVICE_UNAVAILABLE,
            text="slices are not visible yet, or no node agent has taken the driver",
        )

    async def metrics(_request: web.Request) -> web.Response:
        content = prometheus_client.generate_latest(registry)
        return web.Response(body=content, headers={"Content-Type": prometheus_client.CONTENT_TYPE_LATEST})

    application = web.Application()
    application.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    opened = _listen(port)
    async with webserver.serving(application, opened):
        yield opened.getsockname()[1]


def _listen(port: int) -> socket.socket:
    """Return one socket for all addresses of both families: two of them would each get a free port of its own."""
    try:
        if socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        return socket.create_server(("", port))
    except OSError as error:
        raise errors.DriverError(f"port {port}: {error.strerror or error}") from error
