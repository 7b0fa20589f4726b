"""The server on a socket: uvicorn with TLS, the client's certificate, and a shutdown that finishes accepted writes."""

import asyncio
import contextlib
import pathlib
import re
import signal
import socket
import ssl
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import uvicorn
from uvicorn.protocols.http import httptools_impl

from drachma import errors
from drachma.listening import budget as budgets
from drachma.listening import guard
from drachma.listening import limits as limiting
from drachma.listening.listener import Listener
from drachma.server.access import authentication, certificates
from drachma.server.user import User
from drachma.server.wire import app, tunnel
from drachma.server.wire.requests import CONNECTION

GRACE_SECONDS: Final = 30
"""How long a server that stops waits for requests under way."""

GOODBYE_SECONDS: Final = 1.0
"""How long a server that stops waits for the other end of a connection that it has closed."""

_ALL_ADDRESSES: Final = ("0.0.0.0", "::")
_METHODS: Final = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT"})
_USUAL_STARTS: Final = (b"GET ", b"POST ", b"PUT ", b"PATCH ", b"DELETE ")
_UNKNOWN_METHOD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) \S+ HTTP/1\.[01]\r\n")
_UNSERVED_METHOD: Final = b"OPTIONS"


class Address(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """``host:port``, ``[v6]:port`` or ``:port``; InvalidValueError for anything else."""
        host, separator, port = text.rpartition(":")
        if not separator or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise errors.InvalidValueError(f"address {text!r}: expected host:port with a port up to 65535")
        return cls(host.strip("[]") or "0.0.0.0", int(port))

    @property
    def url(self) -> str:
        """How clients on this machine reach it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"https://[{host}]:{self.port}" if ":" in host else f"https://{host}:{self.port}"

    @property
    def remote_url(self) -> str:
        """How clients elsewhere may reach it, where it listens on all addresses; else empty."""
        return f"https://{socket.gethostname()}:{self.port}" if self.host in _ALL_ADDRESSES else ""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names and addresses that the server's certificate must have."""
        own = () if self.host in _ALL_ADDRESSES else (self.host,)
        return (*own, "127.0.0.1", "::1", "localhost", socket.gethostname(), "kubernetes", "kubernetes.default.svc")


def bind(address: Address) -> tuple[socket.socket, Address]:
    """An open socket, and the address with the port that it got.

    Raises:
        errors.InvalidValueError: nothing can listen there.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((address.host, address.port))
    except OSError as error:
        opened.close()
        raise errors.InvalidValueError(
            f"address {address.host}:{address.port}: cannot listen: {error.strerror}"
        ) from error
    opened.set_inheritable(True)
    return opened, Address(address.host, opened.getsockname()[1])


class _Config(uvicorn.Config):
    """Uvicorn's, with more than one authority for certificates of clients."""

    def __init__(self, application: app.Application, client_authority: pathlib.Path | None, **options: Any) -> None:
        super().__init__(application, **options)
        self._client_authority = client_authority

    def load(self) -> None:
        super().load()
        if self._client_authority is not None:
            assert self.ssl is not None, "served with TLS only"
            self.ssl.load_verify_locations(self._client_authority)


class Server(uvicorn.Server):
    """Serves an application; watches end first when it stops, so that nothing keeps it waiting."""

    def __init__(
        self,
        application: app.Application,
        files: certificates.Files,
        *,
        client_authority: pathlib.Path | None = None,
        budget: budgets.Budget = budgets.PROCESS,
    ) -> None:
        """``client_authority`` has authorities that clients' certificates may be of, beside the server's own."""
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
        """Listens on sockets, within limits that uvicorn does not have."""
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
        """Lets SIGINT and SIGTERM end the serving and nothing else: whoever serves has files to close afterwards."""
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
        """Cuts connections whose other end does not answer a polite goodbye, for which TLS waits half a minute."""
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
    """HTTP with what uvicorn lacks: it tells the application about the client's certificate, lets it refuse methods
    that the parser does not know, and gives up clients that do not finish what they begin.
    """

    def __init__(self, *, slot: budgets.Slot, limits: limiting.Limits, **of_uvicorn: Any) -> None:
        super().__init__(app_state={}, **of_uvicorn)
        self._slot = slot
        self._limits = limits
        self._guard: guard.Guard
        self._user: User | None = None
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
        if certificate:
            self._user = authentication.certificate_user(certificate, connection.getpeercert(binary_form=True))
        self._guard = guard.Guard(transport, slot=self._slot, limits=self._limits, loop=self.loop)
        self._guard.on_give_up = self._disconnect
        self.app_state[CONNECTION] = self._guard
        self._guard.await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.lose()
        if self._tunnel is not None:
            self._tunnel.end()
        super().connection_lost(exc)

    def _disconnect(self) -> None:
        """Tell the application that the answer under way reaches nobody, before uvicorn misses its end."""
        if self._answering and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

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
                # The parser takes such a request for broken. Methods that are not served are all answered alike.
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
            self._tunnel = tunnel.Tunnel(self.transport, self.flow, self._taken_over)
            shown = self.scope.get("extensions") or {}
            self.scope["extensions"] = {**shown, tunnel.EXTENSION: {tunnel.TUNNEL: self._tunnel}}
        super().on_headers_complete()

    def _taken_over(self) -> None:
        """What is sent from now on is no answer that uvicorn could know of."""
        self._guard.allow_pauses()
        self.cycle.disconnected = True

    def _unsupported_upgrade_warning(self) -> None:
        """Says nothing: which streams are served is for the application to answer."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_receiving = self._is_in_head = True
        if self._user is not None:
            self.scope["extensions"] = {authentication.EXTENSION: {authentication.USER: self._user}}

    def on_message_complete(self) -> None:
        self._is_receiving = False
        if self._owes_body:
            self._owes_body = False
            self._guard.work()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self.scope["method"] == "HEAD":
            # Nothing comes after the head.
            self.transport.write(b"")
        self._answering -= 1
        if self._tunnel is not None:
            # Nothing was made of the other protocol, and what the client sends may be it already.
            self.transport.close()
        if not self._answering:
            self._guard.wait()
            if self._is_receiving:
                # The answer did not wait for the rest of the request, which may still come, but not for ever.
                self._guard.await_head()
        super().on_response_complete()


class _Corked:
    """A transport that sends the head of an answer together with what comes next.

    Uvicorn writes head and body one after the other, and each write is a system call and a TLS record.
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
