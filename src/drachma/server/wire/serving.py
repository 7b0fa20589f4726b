"""The server on a socket: TLS, client certificates, and a shutdown that finishes accepted writes."""

import asyncio
import contextlib
import logging
import pathlib
import re
import signal
import socket
import ssl
from collections.abc import Iterator
from typing import Any, Final

from uvicorn.server import ServerState

from drachma.listening import asgiserver, clientcertificates, httpconnection
from drachma.listening import budget as budgets
from drachma.listening import limits as limiting
from drachma.listening.exchange import Exchange, Scope
from drachma.server.access import authentication, certificates
from drachma.server.wire import app, tunnel
from drachma.server.wire.requests import CONNECTION

_log = logging.getLogger(__name__)

GRACE_SECONDS: Final = 30
"""Time that a stopping server waits for requests in progress."""

GOODBYE_SECONDS: Final = 1.0
"""Time that a stopping server waits for clients to close their ends of connections."""

_METHODS: Final = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT"})
_USUAL_STARTS: Final = (b"GET ", b"POST ", b"PUT ", b"PATCH ", b"DELETE ")
_UNKNOWN_METHOD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) \S+ HTTP/1\.[01]\r\n")
_UNSERVED_METHOD: Final = b"OPTIONS"


class Server(asgiserver.Server):
    """Serves an application over TLS. When it stops, watches end first, so that they do not delay it."""

    def __init__(
        self,
        application: app.Application,
        files: certificates.Files,
        *,
        client_authority: pathlib.Path | None = None,
        budget: budgets.Budget = budgets.PROCESS,
    ) -> None:
        """``client_authority`` has authorities of client certificates, in addition to the server's own."""
        context = _tls_context(files, client_authority)
        super().__init__(application, Connection, context=context, budget=budget, grace_seconds=GRACE_SECONDS)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let SIGINT and SIGTERM end only the serving, because the caller has files to close afterwards."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._application.drain()
        reaper = asyncio.create_task(self._reap())
        try:
            await super().shutdown(sockets)
        finally:
            reaper.cancel()
            await self._application.close()

    async def _reap(self) -> None:
        """Abort connections whose other end does not close, for which TLS would wait half a minute."""
        closing: dict[object, float] = {}
        loop = asyncio.get_running_loop()
        while True:
            for connection in list(self.server_state.connections):
                transport: Any = connection.transport
                if transport.is_closing() and loop.time() > closing.setdefault(
                    connection, loop.time() + GOODBYE_SECONDS
                ):
                    transport.abort()
            await asyncio.sleep(0.1)


def _tls_context(files: certificates.Files, client_authority: pathlib.Path | None) -> ssl.SSLContext:
    """Return the server's TLS context. Clients may show a certificate of the server's authority or of another one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(files.authority)
    if client_authority is not None:
        context.load_verify_locations(client_authority)
    if not clientcertificates.tolerate(context):
        _log.warning("connections with client certificates that cannot be verified are closed instead of refused")
    return context


class Connection(httpconnection.HttpConnection):
    """A connection with client certificates, tunnels, and an answer to unknown methods."""

    def __init__(
        self, application: app.Application, state: ServerState, *, slot: budgets.Slot, limits: limiting.Limits
    ) -> None:
        super().__init__(application, state, slot=slot, limits=limits)
        self._tunnel: tunnel.Tunnel | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.scope_state[CONNECTION] = self.guard
        connection = transport.get_extra_info("ssl_object")
        certificate = connection.getpeercert() if connection is not None else None
        if not certificate:
            return
        if clientcertificates.is_verified(connection):
            encoded = connection.getpeercert(binary_form=True)
            client = authentication.read_certificate(certificate, encoded)
        else:
            client = authentication.UNVERIFIED
        self.extensions[authentication.EXTENSION] = {authentication.CERTIFICATE: client}

    def connection_lost(self, exc: Exception | None) -> None:
        if self._tunnel is not None:
            self._tunnel.end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._tunnel is not None:
            self._tunnel.feed(data)
            return
        if not self.is_receiving and not data.startswith(_USUAL_STARTS):
            method = _UNKNOWN_METHOD.match(data)
            if method is not None and method[1] not in _METHODS:
                # The parser reports such a request as malformed. All methods that are not served get the same answer.
                data = _UNSERVED_METHOD + data[method.end(1) :]
        super().data_received(data)

    def offer_upgrade(self, scope: Scope) -> None:
        self._tunnel = tunnel.Tunnel(self.transport, self, self._hand_over)
        scope["extensions"] = {**self.extensions, tunnel.EXTENSION: {tunnel.TUNNEL: self._tunnel}}

    def _hand_over(self) -> None:
        """Mark the connection as one that no longer carries HTTP."""
        if self.exchange is not None:
            self.exchange.is_disconnected = True

    def finish(self, exchange: Exchange) -> None:
        if self._tunnel is not None:
            # The upgrade was not accepted, and the client may be sending the other protocol already.
            self.transport.close()
        super().finish(exchange)
