"""Status page of a process: liveness, readiness and metrics. Components and drivers serve it.

A process is alive while it answers. It is ready while it has no problems: otherwise ``/readyz`` answers 503 with the
problems, one a line. ``/readyz?verbose`` also lists notes: what a process does without.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import TypeAlias

import prometheus_client
from aiohttp import web

from drachma import errors

HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
"""Paths that tell nothing secret; probes read them without credentials."""

Problems: TypeAlias = Callable[[], Sequence[str]]
"""Function that returns the reasons why a process is not ready; none if it is."""


def application(
    problems: Problems, registry: prometheus_client.CollectorRegistry, *, notes: Problems = tuple
) -> web.Application:
    """Return the application that serves the page; any other path is not found."""

    async def live(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def ready(request: web.Request) -> web.Response:
        reasons = problems()
        if reasons:
            lines = [*(f"[-]{reason}" for reason in reasons), "readyz check failed"]
            return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text="\n".join(lines) + "\n")
        if "verbose" not in request.query:
            return web.Response(text="ok")
        lines = [*(f"[+]{note}" for note in notes()), "[+]ready", "readyz check passed"]
        return web.Response(text="\n".join(lines) + "\n")

    async def metrics(_request: web.Request) -> web.Response:
        # Forming thousands of samples takes long enough to delay others.
        content = await asyncio.to_thread(prometheus_client.generate_latest, registry)
        return web.Response(body=content, headers={"Content-Type": prometheus_client.CONTENT_TYPE_LATEST})

    page = web.Application()
    page.add_routes(
        [
            web.get("/healthz", live),
            web.get("/livez", live),
            web.get("/readyz", ready),
            web.get("/metrics", metrics),
        ]
    )
    return page


def listen_everywhere(port: int) -> socket.socket:
    """Return one socket for all addresses of both families: two of them would each get a free port of its own.

    Raises:
        errors.InvalidValueError: the port is taken, or needs privileges.
    """
    try:
        if socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        return socket.create_server(("", port))
    except OSError as error:
        raise errors.InvalidValueError(f"port {port}: cannot listen: {error.strerror or error}") from error
