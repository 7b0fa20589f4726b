"""Serving the dashboard on a socket, in a process of its own or next to an API server.

The application is imported when the first request comes, so that a control plane whose dashboard is never opened
starts no later for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import ssl
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final
from urllib import parse

import msgspec

from drachma.client.access import Access
from drachma.listening import addresses, asgiserver
from drachma.process import tlsserving
from drachma.runtime import clock
from drachma.web.settings import Settings

if TYPE_CHECKING:
    from drachma.process.hosting import Host
    from drachma.web.application import Dashboard


class _Deferred:
    """The application of a dashboard, which is made for the first request."""

    def __init__(self, settings: Settings, make: Callable[[Settings], Dashboard]) -> None:
        self._settings: Final = settings
        self._make_dashboard: Final = make
        self._making: asyncio.Task[Dashboard] | None = None
        self._sweeping: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._making is None:
            self._making = asyncio.create_task(self._make())
        dashboard = await asyncio.shield(self._making)
        await dashboard.application(scope, receive, send)

    async def _make(self) -> Dashboard:
        dashboard = await asyncio.to_thread(self._make_dashboard, self._settings)
        self._sweeping = asyncio.create_task(dashboard.sessions.sweep(), name="dashboard sessions")
        return dashboard

    async def close(self) -> None:
        if self._making is None:
            return
        dashboard = await self._making
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        await dashboard.sessions.close()


def _import(settings: Settings) -> Dashboard:
    from drachma.web.application import Dashboard

    return Dashboard(settings)


@contextlib.asynccontextmanager
async def running(settings: Settings, make: Callable[[Settings], Dashboard] = _import) -> AsyncIterator[Settings]:
    """Serve the dashboard while the block lasts. Yield the settings with the port that it got.

    Raises:
        errors.InvalidValueError: the address cannot be listened on.
    """
    opened, bound = addresses.bind(settings.address)
    settings = msgspec.structs.replace(settings, address=bound)
    application = _Deferred(settings, make)
    async with _own_certificate(settings) as context, asgiserver.serving(application, opened, context=context):
        try:
            yield settings
        finally:
            # Views end first, which ends the streams of open pages.
            await application.close()


@contextlib.asynccontextmanager
async def _own_certificate(settings: Settings) -> AsyncIterator[ssl.SSLContext | None]:
    """Yield the TLS context of the dashboard, and load each new certificate while the block lasts."""
    if settings.certificate is None:
        yield None
        return
    context = tlsserving.context(settings.certificate)
    following = asyncio.create_task(
        tlsserving.follow(context, settings.certificate, clock=clock.SystemClock()), name="dashboard certificate"
    )
    try:
        yield context
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def address(settings: Settings) -> str:
    """Return the address to open in a browser, with the start key if there is one."""
    own = settings.address.url
    base = settings.public_url.rstrip("/") or (own if settings.certificate else own.replace("https://", "http://", 1))
    return f"{base}/?{parse.urlencode({'key': settings.start_key})}" if settings.start_key else f"{base}/"


class Companion:
    """The dashboard next to an API server in the same process, for ``hosting.run``."""

    def __init__(self, listen: addresses.Address) -> None:
        self._listen: Final = listen
        self.url = ""
        """Address to open in a browser, once the dashboard is served."""

    async def run(self, host: Host) -> None:
        """Serve until cancelled. The address signs a browser in as the administrator."""
        settings = Settings(
            access=Access(
                server=host.url,
                source="drachma up",
                certificate_authority=host.authority,
                token=host.token,
            ),
            address=self._listen,
            start_key=secrets.token_urlsafe(24) if self._listen.host in ("127.0.0.1", "::1", "localhost") else "",
        )
        async with running(settings) as bound:
            self.url = address(bound)
            host.ready()
            await asyncio.Event().wait()
