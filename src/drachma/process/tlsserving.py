"""Serving of an aiohttp application on an open socket, over TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl

from aiohttp import web

from drachma.listening import webserver
from drachma.server.access import certificates


def context(files: certificates.Files) -> ssl.SSLContext:
    """Return the TLS context of a serving certificate."""
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_context.load_cert_chain(files.certificate, files.key)
    return server_context


async def serve(application: web.Application, opened: socket.socket, tls: ssl.SSLContext) -> None:
    """Serve until cancelled."""
    async with webserver.serving(application, opened, context=tls):
        await asyncio.Event().wait()
