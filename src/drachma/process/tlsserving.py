"""An application of aiohttp on an open socket, over TLS, until cancelled."""

from __future__ import annotations

import asyncio
import socket
import ssl

from aiohttp import web

from drachma.listening import webserver
from drachma.server.access import certificates


def context(files: certificates.Files) -> ssl.SSLContext:
    """How to serve with a certificate."""
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.load_cert_chain(files.certificate, files.key)
    return made


async def serve(application: web.Application, opened: socket.socket, by: ssl.SSLContext) -> None:
    """Answers until cancelled."""
    async with webserver.serving(application, opened, context=by):
        await asyncio.Event().wait()
