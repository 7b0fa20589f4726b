"""Exchanges: one request and its response on a connection, for applications of ASGI.

An application receives and sends ASGI messages. One that knows of exchanges finds its own in the scope, under
:data:`EXCHANGE`: it takes a body that has arrived without waiting, and passes on a whole response in one call instead
of two messages.
"""

import asyncio
import functools
import http
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final, Protocol, TypeAlias

_log = logging.getLogger(__name__)

EXCHANGE: Final = "drachma.exchange"
"""Key of the exchange in the ASGI scope."""

Headers: TypeAlias = Iterable[tuple[bytes, bytes]]
Scope: TypeAlias = dict[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Application: TypeAlias = Callable[[Scope, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Any]

_NAME: Final = re.compile(b'[\x00-\x1f\x7f()<>@,;:\\[\\]={} \t\\\\"]')
_VALUE: Final = re.compile(b"[\x00-\x08\x0a-\x1f\x7f]")
_WITHOUT_BODY: Final = frozenset({204, 304})
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSES: Final = b"connection: close\r\n"
_FAILURE: Final = ((b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close"))
_FAILURE_BODY: Final = b"Internal Server Error"
_HEADS: Final = 256
"""Heads of responses that are remembered; hardly more are in use."""


class Connection(Protocol):
    """The connection of an exchange."""

    @property
    def transport(self) -> Any: ...

    @property
    def default_headers(self) -> bytes:
        """Lines that every response has."""

    @property
    def is_write_paused(self) -> bool: ...

    def resume_reading(self) -> None: ...

    async def drain(self) -> None:
        """Return when there is room for more bytes."""

    def finish(self, exchange: "Exchange") -> None:
        """Record that a response is complete."""


class Exchange:
    """A request and its response."""

    __slots__ = (
        "_awaits_continue",
        "_body",
        "_connection",
        "_has_news",
        "_head",
        "_is_chunked",
        "_is_head_request",
        "_unsent",
        "_waiter",
        "has_more",
        "head_bytes",
        "is_complete",
        "is_disconnected",
        "is_started",
        "keeps_alive",
    )

    def __init__(
        self, connection: Connection, *, is_head: bool, keeps_alive: bool, awaits_continue: bool, head_bytes: int
    ) -> None:
        """``is_head`` says that the response has no body, ``awaits_continue`` that the client waits to send its own.

        ``head_bytes`` is the memory of the request that counts until it is answered.
        """
        self.head_bytes: Final = head_bytes
        self._connection: Final = connection
        self._is_head_request: Final = is_head
        self._awaits_continue = awaits_continue
        self._body = b""
        self._has_news = False
        self._waiter: asyncio.Future[None] | None = None
        self._head = b""
        self._is_chunked = False
        self._unsent = 0
        self.keeps_alive = keeps_alive
        self.has_more = True
        """True until the body of the request has arrived."""
        self.is_started = False
        """True when a part of the response may have been sent."""
        self.is_complete = False
        self.is_disconnected = False

    @property
    def unread(self) -> int:
        """Bytes of the body that the application has not taken yet."""
        return len(self._body)

    def feed(self, data: bytes) -> None:
        """Add a part of the request's body."""
        self._body = self._body + data if self._body else data
        self.notify()

    def end_body(self) -> None:
        """Record that the request's body is complete."""
        self.has_more = False
        self.notify()

    def disconnect(self) -> None:
        """Record that the client is gone, or that another protocol has the connection."""
        if not self.is_complete:
            self.is_disconnected = True
        self.notify()

    def notify(self) -> None:
        """Wake the application if it waits for a message."""
        self._has_news = True
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def run(self, application: Application, scope: Scope) -> None:
        """Have an application answer; one that does not gets its client a 500, or a closed connection."""
        problem = ""
        try:
            await application(scope, self.receive, self.send)
        except BaseException:
            _log.exception("%s %s: the application failed", scope["method"], scope["path"])
            problem = "failed"
        if self.is_complete or (self.is_disconnected and not problem):
            return
        if not problem:
            _log.error("%s %s: the application did not complete its response", scope["method"], scope["path"])
        if self.is_started:
            self._connection.transport.close()
            return
        await self.send({"type": "http.response.start", "status": 500, "headers": _FAILURE})
        await self.send({"type": "http.response.body", "body": _FAILURE_BODY})

    async def receive(self) -> Message:
        """Return the next message of ASGI: a part of the body, or the end of the connection or exchange."""
        connection = self._connection
        if self._awaits_continue:
            self._awaits_continue = False
            if not connection.transport.is_closing():
                connection.transport.write(_CONTINUE)
        if not (self.is_disconnected or self.is_complete):
            connection.resume_reading()
            if not self._has_news:
                await self._wait()
            self._has_news = False
        if self.is_disconnected or self.is_complete:
            return {"type": "http.disconnect"}
        body, self._body = self._body, b""
        return {"type": "http.request", "body": body, "more_body": self.has_more}

    def take_body(self) -> bytes | None:
        """Return the body of the request if all of it has arrived, else None."""
        if self.has_more or self.is_disconnected:
            return None
        self._has_news = False
        body, self._body = self._body, b""
        return body

    async def _wait(self) -> None:
        while not self._has_news:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    async def send(self, message: Message) -> None:
        """Send a message of ASGI: the head of a response, or a part of its body."""
        connection = self._connection
        if connection.is_write_paused and not self.is_disconnected:
            await connection.drain()
        if self.is_disconnected:
            return
        if message["type"] == "http.response.start" and not self.is_started:
            self._begin(message["status"], message.get("headers", ()))
        elif message["type"] == "http.response.body" and self.is_started and not self.is_complete:
            self._continue(message.get("body", b""), has_more=message.get("more_body", False))
        else:
            raise RuntimeError(f"unexpected message {message['type']!r} of the application")

    def respond(self, code: int, headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> bool:
        """Send a whole response at once. Return False, and do nothing, if the client does not read at the moment.

        ``headers`` have neither ``content-length`` nor ``connection``.
        """
        connection = self._connection
        if connection.is_write_paused or self.is_started:
            return False
        self.is_started = True
        self._awaits_continue = False
        if self.is_disconnected:
            return True
        closes = b"" if self.keeps_alive else _CLOSES
        content = b"" if self._is_head_request else body
        connection.transport.write(
            b"%b%b%bcontent-length: %d\r\n%b\r\n%b"
            % (_status_line(code), connection.default_headers, _make_lines(headers), len(body), closes, content)
        )
        self._complete()
        return True

    def _begin(self, code: int, headers: Headers) -> None:
        """Make the head of a response; it is written together with the first part of the body."""
        lines = [_status_line(code), self._connection.default_headers]
        length: int | None = None
        has_encoding = closes = False
        for name, value in headers:
            lines.append(_make_line(name, value))
            match name.lower():
                case b"content-length":
                    length = int(value)
                case b"transfer-encoding":
                    has_encoding = value.lower() == b"chunked"
                case b"connection":
                    closes = b"close" in [token.strip() for token in value.lower().split(b",")]
        if closes:
            self.keeps_alive = False
        elif not self.keeps_alive:
            lines.append(_CLOSES)
        self._is_chunked = has_encoding
        if length is None and not has_encoding and not self._is_head_request and code not in _WITHOUT_BODY:
            self._is_chunked = True
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        self._unsent = 0 if self._is_chunked or self._is_head_request else length or 0
        self._head = b"".join(lines)
        self.is_started = True
        self._awaits_continue = False

    def _continue(self, body: bytes, *, has_more: bool) -> None:
        head, self._head = self._head, b""
        if self._is_head_request:
            content = b""
        elif self._is_chunked:
            content = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            if not has_more:
                content += b"0\r\n\r\n"
        else:
            if len(body) > self._unsent or (not has_more and len(body) != self._unsent):
                raise RuntimeError("the response does not have the length that its head says")
            self._unsent -= len(body)
            content = body
        if head or content:
            self._connection.transport.write(head + content if head else content)
        if not has_more:
            self._complete()

    def _complete(self) -> None:
        self.is_complete = True
        self.notify()
        if not self.keeps_alive:
            self._connection.transport.close()
        self._connection.finish(self)


def write_lines(headers: Headers) -> bytes:
    """Return headers as lines. Raises RuntimeError for a header that is not one."""
    return b"".join([_make_line(name, value) for name, value in headers])


_make_lines: Final = functools.lru_cache(maxsize=_HEADS)(write_lines)


def _make_line(name: bytes, value: bytes) -> bytes:
    if _NAME.search(name) or _VALUE.search(value):
        raise RuntimeError(f"invalid header {name!r}: {value!r}")
    return b"%b: %b\r\n" % (name.lower(), value)


@functools.lru_cache(maxsize=_HEADS)
def _status_line(code: int) -> bytes:
    try:
        phrase = http.HTTPStatus(code).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {code} {phrase}\r\n".encode()
