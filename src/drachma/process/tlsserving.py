"""An application of aiohttp on an open socket, over TLS, until cancelled."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Final

from aiohttp import web

from drachma.server.access import certificates

_GOODBYE_SECONDS: Final = 1.0


def context(files: certificates.Files) -> ssl.SSLContext:
    """How to serve with a certificate."""
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.load_cert_chain(files.certificate, files.key)
    return made


async def serve(application: web.Application, opened: socket.socket, by: ssl.SSLContext) -> None:
    """Answers until cancelled."""
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=_GOODBYE_SECONDS)
    await runner.setup()
    try:
        await web.SockSite(runner, opened, ssl_context=by).start()
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
