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

import uvicorn
from uvicorn.server import ServerState

from drachma.listening import budget as budgets
from drachma.listening import clientcertificates, httpconnection
from drachma.listening import limits as limiting
from drachma.listening.exchange import Exchange, Scope
from drachma.listening.listener import Listener
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


class _Config(uvicorn.Config):
    """Uvicorn's configuration with more than one authority for client certificates."""

    def __init__(self, application: app.Application, client_authority: pathlib.Path | None, **options: Any) -> None:
        super().__init__(application, **options)
        self._client_authority = client_authority

    def load(self) -> None:
        super().load()
        if self._client_authority is not None:
            assert self.ssl is not None, "the server always uses TLS"
            self.ssl.load_verify_locations(self._client_authority)
        if self.ssl is not None and not clientcertificates.tolerate(self.ssl):
            _log.warning("connections with client certificates that cannot be verified are closed instead of refused")


class Server(uvicorn.Server):
    """Serves an application. When it stops, watches end first, so that they do not delay it."""

    def __init__(
        self,
        application: app.Application,
        files: certificates.Files,
        *,
        client_authority: pathlib.Path | None = None,
        budget: budgets.Budget = budgets.PROCESS,
    ) -> None:
        """``client_authority`` has authorities of client certificates, in addition to the server's own."""
        self._application = application
        self._budget = budget
        super().__init__(
            _Config(
                application,
                client_authority,
                loop="none",
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=int(budget.limits.idle_seconds),
                timeout_graceful_shutdown=GRACE_SECONDS,
                ssl_certfile=files.certificate,
                ssl_keyfile=str(files.key),
                ssl_ca_certs=str(files.authority),
                ssl_cert_reqs=ssl.CERT_OPTIONAL,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on sockets, within limits that uvicorn does not have."""
        self.servers = []
        for opened in sockets or ():
            listener = Listener(
                opened,
                self._make_protocol,
                context=self.config.ssl,
                limits=self._budget.limits,
                budget=self._budget,
            )
            self.servers.append(listener)  # type: ignore[arg-type]
        self.started = True

    def _make_protocol(self, slot: budgets.Slot) -> asyncio.Protocol:
        return Connection(self._application, self.server_state, slot=slot, limits=self._budget.limits)

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
