"""A proxy between a driver under test and its API server, which makes requests fail on demand.

It forwards requests unchanged, as the user whose access it has; the driver needs no credentials. Every client that
reaches the proxy can do what that user can.
"""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import socket
from collections.abc import AsyncIterator
from typing import Final

import aiohttp
from aiohttp import web

from drachma.api import manifest
from drachma.client import access, credentials
from drachma.driver.conformance.apifaults import ApiFaults
from drachma.listening import webserver
from drachma.listening.addresses import Address
from drachma.runtime import clock

_HOP_BY_HOP: Final = frozenset(
    {"connection", "content-length", "host", "keep-alive", "transfer-encoding", "upgrade", "authorization"}
)
_LARGEST_BODY: Final = 16 << 20
_ANY_PORT: Final = Address("127.0.0.1", 0)


@contextlib.asynccontextmanager
async def serving(apiserver: access.Access, faults: ApiFaults, *, address: Address = _ANY_PORT) -> AsyncIterator[str]:
    """Serve at an address, by default on a free port of the loopback address, and yield the URL.

    Raises:
        OSError: the address cannot be bound.
    """
    own = credentials.Credentials(apiserver, clock=clock.SystemClock())
    secured = aiohttp.TCPConnector(ssl=access.tls_context(apiserver, (await own.identity()).key_pair), limit=0)
    endless = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=secured, timeout=endless, auto_decompress=False) as session:

        async def handle(request: web.Request) -> web.StreamResponse:
            fault = faults.meet(request.method, request.path)
            if fault is not None:
                await asyncio.sleep(fault.seconds)
                if fault.status is not None:
                    return web.json_response(fault.status, status=int(fault.status["code"]))
            return await _forward(request, session, f"{apiserver.server}{request.raw_path}", await own.identity())

        application = web.Application(client_max_size=_LARGEST_BODY)
        application.router.add_route("*", "/{path:.*}", handle)
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        opened = socket.create_server((address.host, address.port), family=family)
        # Watches of a killed driver must end with it.
        async with webserver.serving(application, opened, ends_handlers=True):
            host = f"[{address.host}]" if ":" in address.host else address.host
            yield f"http://{host}:{opened.getsockname()[1]}"


async def _forward(
    request: web.Request, session: aiohttp.ClientSession, url: str, identity: credentials.Identity
) -> web.StreamResponse:
    headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP]
    headers += identity.headers
    async with session.request(request.method, url, headers=headers, data=await request.read() or None) as answer:
        own = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
        response = web.StreamResponse(status=answer.status, headers=own)
        # The check may kill the driver while the answer is sent.
        with contextlib.suppress(ConnectionResetError):
            await response.prepare(request)
            async for part in answer.content.iter_any():
                await response.write(part)
            await response.write_eof()
        return response


def write_kubeconfig(path: pathlib.Path, url: str) -> None:
    """Write the kubeconfig of the driver, without credentials."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "check", "cluster": {"server": url}}],
        "users": [{"name": "check", "user": {}}],
        "contexts": [{"name": "check", "context": {"cluster": "check", "user": "check"}}],
        "current-context": "check",
    }
    path.write_text(manifest.write_yaml([content]), encoding="utf-8")
