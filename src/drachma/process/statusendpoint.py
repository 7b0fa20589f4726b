"""Status page of a component: on a port of the loopback address, or over HTTPS for other machines.

Over HTTPS, probes need no credentials, and metrics need the permission to ``get`` the path ``/metrics``, which the API
server decides, as for upstream's components.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import pathlib
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

import prometheus_client
from aiohttp import web

from drachma import errors
from drachma.listening import addresses, statuspage, webserver
from drachma.process import tlsserving
from drachma.process.extensionaccess import ExtensionAccess
from drachma.runtime import Surroundings
from drachma.runtime.accessreviews import Action
from drachma.server.access import certificates

_LOOPBACK: Final = "127.0.0.1"

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextlib.asynccontextmanager
async def serve_locally(
    port: int,
    problems: statuspage.Problems,
    registry: prometheus_client.CollectorRegistry,
    *,
    notes: statuspage.Problems = tuple,
) -> AsyncIterator[None]:
    """Serve the page on a port of the loopback address while the block lasts; nothing on port 0.

    Raises:
        errors.InvalidValueError: the port is taken.
    """
    if not port:
        yield
        return
    try:
        opened = socket.create_server((_LOOPBACK, port))
    except OSError as error:
        raise errors.InvalidValueError(f"address {_LOOPBACK}:{port}: cannot listen: {error.strerror}") from error
    async with webserver.serving(statuspage.application(problems, registry, notes=notes), opened):
        yield


@contextlib.asynccontextmanager
async def serve_securely(
    address: addresses.Address | None, problems: statuspage.Problems, surroundings: Surroundings
) -> AsyncIterator[None]:
    """Serve the page over HTTPS while the block lasts; nothing without an address.

    Its certificate is of an authority of its own, made for as long as the process runs, and renewed.

    Raises:
        errors.InvalidValueError: the address cannot be bound.
    """
    if address is None:
        yield
        return
    opened, bound = addresses.bind(address)
    with tempfile.TemporaryDirectory(prefix="drachma-status-") as folder:
        now = dt.datetime.now(dt.UTC)
        files = certificates.ensure(pathlib.Path(folder), hosts=bound.hosts, now=now)
        context = tlsserving.context(files)
        access = ExtensionAccess(surroundings, context)
        notes = surroundings.informers.absences
        application = statuspage.application(problems, surroundings.registry, notes=notes)
        application.middlewares.append(_make_check(access))
        following = (
            asyncio.create_task(access.follow(), name="certificates of clients"),
            asyncio.create_task(tlsserving.follow(context, files, clock=surroundings.clock), name="own certificate"),
        )
        try:
            async with webserver.serving(application, opened, context=context):
                yield
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)


def _make_check(access: ExtensionAccess) -> Any:
    @web.middleware
    async def check(request: web.Request, handler: _Handler) -> web.StreamResponse:
        if request.path in statuspage.HEALTH_PATHS:
            return await handler(request)
        try:
            user = await access.user_of(request)
            if user is None:
                return web.Response(status=HTTPStatus.UNAUTHORIZED, text="Unauthorized\n")
            if not await access.may(user, Action(verb=request.method.lower(), path=request.path)):
                text = f'forbidden: User "{user.name}" cannot {request.method.lower()} path "{request.path}"\n'
                return web.Response(status=HTTPStatus.FORBIDDEN, text=text)
        except (errors.RefusedError, errors.UnreachableError) as error:
            return web.Response(status=HTTPStatus.INTERNAL_SERVER_ERROR, text=f"cannot authorize: {error}\n")
        return await handler(request)

    return check
