"""The server on a socket: uvicorn with TLS, client certificates, and a shutdown that finishes accepted writes."""

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
from uvicorn.protocols.http import httptools_impl

from drachma.listening import budget as budgets
from drachma.listening import clientcertificates, guard
from drachma.listening import limits as limiting
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
                http=_Protocol,
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
        return _Protocol(
            config=self.config,
            server_state=self.server_state,
            slot=slot,
            limits=self._budget.limits,
        )

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


class _Protocol(httptools_impl.HttpToolsProtocol):
    """HTTP with additions to uvicorn: client certificates, refusal of unknown methods, and limits for slow clients."""

    def __init__(self, *, slot: budgets.Slot, limits: limiting.Limits, **of_uvicorn: Any) -> None:
        super().__init__(app_state={}, **of_uvicorn)
        self._slot = slot
        self._limits = limits
        self._guard: guard.Guard
        self._certificate: authentication.ClientCertificate | None = None
        self._is_receiving = False
        self._is_in_head = False
        self._answering = 0
        self._head_bytes = 0
        self._owes_body = False
        """Whether the rest of a body is waited for."""
        self._tunnel: tunnel.Tunnel | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(_Corked(transport))  # type: ignore[arg-type]
        connection = transport.get_extra_info("ssl_object")
        certificate = connection.getpeercert() if connection is not None else None
        if certificate and clientcertificates.is_verified(connection):
            encoded = connection.getpeercert(binary_form=True)
            self._certificate = authentication.read_certificate(certificate, encoded)
        elif certificate:
            self._certificate = authentication.UNVERIFIED
        self._guard = guard.Guard(transport, slot=self._slot, limits=self._limits, loop=self.loop)
        self._guard.on_give_up = self._disconnect
        self.app_state[CONNECTION] = self._guard
        self._guard.await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.lose()
        if self._tunnel is not None:
            self._tunnel.end()
        super().connection_lost(exc)
        # The parser refers to the protocol. Without this cycle a connection's buffers are freed with it, and not only
        # by the next run of the garbage collector.
        self.parser = None  # type: ignore[assignment]

    def _disconnect(self) -> None:
        """Tell the application that its client has disconnected, before uvicorn notices."""
        cycle: httptools_impl.RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._guard.pause_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._guard.resume_writing()

    def data_received(self, data: bytes) -> None:
        if self._tunnel is not None:
            self._tunnel.feed(data)
            return
        if not self._is_receiving and not data.startswith(_USUAL_STARTS):
            method = _UNKNOWN_METHOD.match(data)
            if method is not None and method[1] not in _METHODS:
                # The parser reports such a request as malformed. All methods that are not served get the same answer.
                data = _UNSERVED_METHOD + data[method.end(1) :]
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.head_bytes:
                self._guard.give_up()
                return
        if not self._answering:
            if not self._guard.awaits_head:
                self._guard.await_head()
        elif self._is_receiving and not self._is_in_head:
            self._owes_body = True
            self._guard.wait()

    def on_headers_complete(self) -> None:
        self._answering += 1
        self._is_in_head = False
        self._head_bytes = 0
        self._guard.work()
        if self.parser.should_upgrade():
            self._tunnel = tunnel.Tunnel(self.transport, self.flow, self._hand_over)
            extensions = self.scope.get("extensions") or {}
            self.scope["extensions"] = {**extensions, tunnel.EXTENSION: {tunnel.TUNNEL: self._tunnel}}
        super().on_headers_complete()

    def _hand_over(self) -> None:
        """Mark the connection as one that uvicorn no longer controls."""
        self._guard.allow_pauses()
        self.cycle.disconnected = True

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing, because the application decides about upgrades."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_receiving = self._is_in_head = True
        if self._certificate is not None:
            self.scope["extensions"] = {authentication.EXTENSION: {authentication.CERTIFICATE: self._certificate}}

    def on_message_complete(self) -> None:
        self._is_receiving = False
        if self._owes_body:
            self._owes_body = False
            self._guard.work()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self.scope["method"] == "HEAD":
            # A response without a body ends with its head.
            self.transport.write(b"")
        self._answering -= 1
        if self._tunnel is not None:
            # The upgrade was not accepted, and the client may be sending the other protocol already.
            self.transport.close()
        if not self._answering:
            self._guard.wait()
            if self._is_receiving:
                # The response did not wait for the rest of the request, which may still arrive within a limit.
                self._guard.await_head()
        super().on_response_complete()


class _Corked:
    """A transport that sends the head of a response together with the next bytes.

    Uvicorn writes head and body separately, and each write is a system call and a TLS record.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._head = b""
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        elif not data:
            return
        elif data.startswith(b"HTTP/1.1 ") and not data.startswith(b"HTTP/1.1 100"):
            self._head = data
            return
        self._transport.write(data)

    def close(self) -> None:
        if self._head:
            self.write(b"")
        self._transport.close()
