"""Serving of an aiohttp application on an open socket, over TLS, with a certificate that is renewed while it serves."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import Final

from aiohttp import web

from drachma import errors
from drachma.listening import webserver
from drachma.runtime.clock import Clock
from drachma.server.access import certificates

_CHECK_SECONDS: Final = 60.0

_log = logging.getLogger(__name__)


def context(files: certificates.Files) -> ssl.SSLContext:
    """Return the TLS context of a serving certificate."""
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_context.load_cert_chain(files.certificate, files.key)
    return server_context


async def serve(
    application: web.Application,
    opened: socket.socket,
    tls: ssl.SSLContext,
    *,
    files: certificates.Files,
    clock: Clock,
) -> None:
    """Serve until cancelled; new connections get the certificate that the files have."""
    async with webserver.serving(application, opened, context=tls):
        await follow(tls, files, clock=clock)


async def follow(tls: ssl.SSLContext, files: certificates.Files, *, clock: Clock) -> None:
    """Renew an own certificate before it expires, and load each new one of another program, until cancelled."""
    # The files may have changed since the context was made, so the first check always loads them.
    loaded: tuple[bytes, bytes] | None = None
    while True:
        await clock.sleep(_CHECK_SECONDS)
        try:
            await asyncio.to_thread(certificates.renew, files, now=clock.utc())
            current = await asyncio.to_thread(_content, files)
            if current != loaded:
                # A pair that does not match would leave the context unable to serve, so another one tries it first.
                context(files)
                tls.load_cert_chain(files.certificate, files.key)
                if loaded is not None:
                    _log.info("certificate %s: loaded the new one", files.certificate)
                loaded = current
        except (OSError, errors.RefusedFileError) as error:
            # Certificate and key of a Secret may be seen one after the other; the last good pair stays in use.
            _log.warning("certificate %s: not renewed: %s", files.certificate, error)


def _content(files: certificates.Files) -> tuple[bytes, bytes]:
    return files.certificate.read_bytes(), files.key.read_bytes()
