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
from drachma.server.access import authentication, certificates
from drachma.server.user import User
from drachma.server.wire import app

GRACE_SECONDS: Final = 30
"""How long a server that stops waits for requests under way."""

GOODBYE_SECONDS: Final = 1.0
"""How long a server that stops waits for the other end of a connection that it has closed."""

IDLE_SECONDS: Final = 120
"""How long a connection without requests stays open."""

_BACKLOG: Final = 2048
_METHODS: Final = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT"})
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
    def hosts(self) -> tuple[str, ...]:
        """The names and addresses that the server's certificate must have."""
        own = () if self.host in ("0.0.0.0", "::") else (self.host,)
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
        self, application: app.Application, files: certificates.Files, *, client_authority: pathlib.Path | None = None
    ) -> None:
        """``client_authority`` has authorities that clients' certificates may be of, beside the server's own."""
        self._application = application
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
                backlog=_BACKLOG,
                timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
                ssl_certfile=files.certificate,
                ssl_keyfile=str(files.key),
                ssl_ca_certs=str(files.authority),
                ssl_cert_reqs=ssl.CERT_OPTIONAL,
            )
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
    """HTTP with what uvicorn lacks: it tells the application about the client's certificate, and lets it refuse
    methods that the parser does not know.
    """

    _user: User | None = None
    _is_receiving = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(_Corked(transport))  # type: ignore[arg-type]
        connection = transport.get_extra_info("ssl_object")
        certificate = connection.getpeercert() if connection is not None else None
        if certificate:
            self._user = authentication.certificate_user(certificate, connection.getpeercert(binary_form=True))

    def data_received(self, data: bytes) -> None:
        method = _UNKNOWN_METHOD.match(data)
        if method is None or method[1] in _METHODS or self._is_receiving:
            super().data_received(data)
            return
        # The parser takes such a request for broken. Methods that are not served are all answered alike.
        super().data_received(_UNSERVED_METHOD + data[method.end(1) :])

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_receiving = True
        if self._user is not None:
            self.scope["extensions"] = {authentication.EXTENSION: {authentication.USER: self._user}}

    def on_message_complete(self) -> None:
        self._is_receiving = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        # The answer to a HEAD has nothing after its head.
        self.transport.write(b"")
        super().on_response_complete()


class _Corked:
    """A transport that sends the head of an answer together with what comes next.

    Uvicorn writes head and body one after the other, and each write is a system call and a TLS record.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._head = b""

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
