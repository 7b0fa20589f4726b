"""Connections of HTTP/1.1 for applications of ASGI: parsing, limits for slow clients, and requests in turn.

A connection has at most one request under way; others that the client has sent already wait, and nothing more is read.
An application is started when all bytes that have arrived are parsed, so a short request has its whole body by then.

A request that is not valid HTTP ends the connection: requests before it are answered, then it is refused, and nothing
after it is read. Trailers of a body are dropped, because a header that comes after authentication must not count.
"""

import asyncio
import http
import logging
import urllib.parse
from collections import deque
from typing import Any, Final

import httptools
from uvicorn.server import ServerState

from drachma.listening import budget as budgets
from drachma.listening import guard, requesthead
from drachma.listening import limits as limiting
from drachma.listening.exchange import EXCHANGE, Application, Exchange, Scope, write_lines

_log = logging.getLogger(__name__)

_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
_MOST_UNREAD: Final = 32 * 1024
"""Bytes of a body that wait for the application; no more is read until it has taken them, and all of them count."""

_FRAMING_SHARE: Final = 8
"""Bytes of framing that each byte of a body brings along: a chunk of one byte has five."""

_HEADER_BYTES: Final = 128
"""Memory that a header takes in addition to its text."""

_USUAL_HEAD: Final = 4096
_USUAL_HEADERS: Final = _USUAL_HEAD // _HEADER_BYTES
"""Bytes and headers up to which a head is not counted while its request is answered."""

_REQUEST_BYTES: Final = 1024
"""Memory that a request takes in addition to its head while it waits for those before it."""

_INVALID: Final = 400


class HttpConnection(asyncio.Protocol):
    """One connection. ``scope_state`` and ``extensions`` become part of every scope."""

    def __init__(
        self, application: Application, state: ServerState, *, slot: budgets.Slot, limits: limiting.Limits
    ) -> None:
        """``state`` belongs to the server, which closes its connections when it stops."""
        self.loop: Final = asyncio.get_running_loop()
        self.transport: Any = None
        self.guard: guard.Guard
        self.scope_state: Final[dict[str, Any]] = {}
        self.extensions: dict[str, Any] = {}
        self.is_write_paused = False
        self.exchange: Exchange | None = None
        """The newest exchange, also after its end."""
        self._running: Exchange | None = None
        self._application: Final = application
        self._state: Final = state
        self._slot: Final = slot
        self._limits: Final = limits
        self._parser: Any = httptools.HttpRequestParser(self)
        # A client that closes the connection with its request still gets its response.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._addresses: dict[str, Any] = {}
        self._default_headers: tuple[object, bytes] = (None, b"")
        self._is_reading_paused = False
        self._room: asyncio.Future[None] | None = None
        self._pipeline: Final[deque[tuple[Exchange, Scope]]] = deque()
        self._fresh: tuple[Exchange, Scope] | None = None
        """Exchange whose head has just arrived, and that is not started yet."""
        self._answering = 0
        self.is_receiving = False
        """True from the first byte of a request to its last."""
        self._is_in_head = False
        self._owes_body = False
        """Whether the rest of a body is waited for."""
        self._framing_bytes = 0
        """Bytes of the request that are not its body, beyond those that its body excuses."""
        self._held_bytes = 0
        """Memory of requests that wait or have long heads, until they are answered."""
        self._is_deaf = False
        """True when nothing more of the client is read, because it would not be HTTP."""
        self._refusal: int | None = None
        """Status code for the request that is not valid, once those before it are answered."""
        self._idle_since = 0.0
        self._idle_timer: asyncio.TimerHandle | None = None
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._awaits_continue = False

    # Transport

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._state.connections.add(self)  # type: ignore[arg-type]
        is_secure = transport.get_extra_info("sslcontext") is not None
        self._addresses = {
            "scheme": "https" if is_secure else "http",
            "server": _address(transport.get_extra_info("sockname")),
            "client": _address(transport.get_extra_info("peername")),
        }
        self.guard = guard.Guard(transport, slot=self._slot, limits=self._limits, loop=self.loop)
        self.guard.on_give_up = self._disconnect
        self.guard.await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self.guard.lose()
        self._state.connections.discard(self)
        self._disconnect()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        self.is_write_paused = False
        self._tell_room()
        # The transport, exchanges and the parser refer to the connection. Without these cycles a connection's buffers
        # are freed with it, and not only by the next run of the garbage collector.
        self.transport.close()
        self.exchange = self._running = self._parser = None
        self._pipeline.clear()

    def pause_writing(self) -> None:
        self.is_write_paused = True
        self.guard.pause_writing()

    def resume_writing(self) -> None:
        self.is_write_paused = False
        self.guard.resume_writing()
        self._tell_room()

    def _tell_room(self) -> None:
        if self._room is not None:
            self._room.set_result(None)
            self._room = None

    async def drain(self) -> None:
        """Return when there is room for more bytes."""
        while self.is_write_paused:
            if self._room is None:
                self._room = self.loop.create_future()
            await asyncio.shield(self._room)

    def pause_reading(self) -> None:
        """Leave further bytes of the client to the kernel."""
        if not self._is_reading_paused:
            self._is_reading_paused = True
            self.transport.pause_reading()

    def hold_unread(self, size: int) -> None:
        """Count the bytes that the application has not taken yet; while they are many, no more is read."""
        if size > _MOST_UNREAD:
            self.pause_reading()
            if not self._slot.hold(self._held_bytes + size):
                self.guard.give_up()

    def resume_reading(self) -> None:
        """Read on, unless requests that have arrived wait for others."""
        if self._is_reading_paused and not self._pipeline:
            self._is_reading_paused = False
            self._slot.hold(self._count_memory())
            self.transport.resume_reading()

    def shutdown(self) -> None:
        """Close the connection, after the response that is under way."""
        if self.exchange is None or self.exchange.is_complete:
            self.transport.close()
        else:
            self.exchange.keeps_alive = False

    def _disconnect(self) -> None:
        for exchange in (self._running, self.exchange):
            if exchange is not None:
                exchange.disconnect()

    # Requests

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        if self._framing_bytes > self._limits.head_bytes:
            self.guard.give_up()
            return
        self._framing_bytes += len(data)
        if (self._is_in_head or not self.is_receiving) and not self._has_room_for_head():
            self.guard.give_up()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The application decides about upgrades. What follows is not HTTP, even if it declines.
            self._is_deaf = True
        except httptools.HttpParserError:
            _log.warning("a client sent an invalid HTTP request")
            self._refuse()
        if self._fresh is not None:
            self._start(*self._fresh)
            self._fresh = None
        if not self._answering:
            if self.is_receiving and not self.guard.awaits_head:
                self.guard.await_head()
        elif self.is_receiving and not self._is_in_head:
            self._owes_body = True
            self.guard.wait()

    def _refuse(self) -> None:
        """Answer the request that is not valid after those before it, and read nothing more."""
        self._is_deaf = True
        self._refusal = self._refusal or _INVALID
        exchange = self.exchange
        if self.is_receiving and not self._is_in_head and exchange is not None and not exchange.is_complete:
            # The head was valid and the body is not: nobody answers this exchange any more.
            self._answering -= 1
            exchange.disconnect()
            if self._pipeline and self._pipeline[-1][0] is exchange:
                self._pipeline.pop()
            if self._fresh is not None and self._fresh[0] is exchange:
                self._fresh = None
            if exchange.is_started:
                self.transport.close()
                return
        self.is_receiving = False
        if self._answering:
            self.pause_reading()
        else:
            self._write_refusal(self._refusal)

    def _write_refusal(self, code: int) -> None:
        text = b"Invalid HTTP request received." if code == _INVALID else http.HTTPStatus(code).phrase.encode()
        self.transport.write(
            b"HTTP/1.1 %d %b\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n"
            b"connection: close\r\n\r\n%b" % (code, http.HTTPStatus(code).phrase.encode(), len(text), text)
        )
        self.transport.close()

    def on_message_begin(self) -> None:
        self.is_receiving = self._is_in_head = True
        self._url = b""
        self._headers = []
        self._awaits_continue = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_in_head:
            return
        if len(self._headers) >= requesthead.MOST_HEADERS:
            self._refusal = 431
            raise ValueError(f"a request with more than {requesthead.MOST_HEADERS} headers")
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self._awaits_continue = True
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        parser = self._parser
        method = parser.get_method().decode("ascii")
        version = parser.get_http_version()
        asks_for_upgrade = parser.should_upgrade()
        self._refusal = requesthead.refusal(version, self._headers, asks_for_upgrade=asks_for_upgrade)
        if self._refusal is not None:
            raise ValueError(f"a request that gets status code {self._refusal}")
        raw_path, query = requesthead.split_target(self._url)
        path = raw_path.decode("ascii")
        previous = self.exchange
        must_wait = previous is not None and not previous.is_complete
        head_bytes = self._hold_head(must_wait=must_wait)
        self._answering += 1
        self._is_in_head = False
        self._framing_bytes = 0
        self.guard.work()
        exchange = self.exchange = Exchange(
            self,
            is_head=method == "HEAD",
            keeps_alive=version != "1.0" and parser.should_keep_alive() and not asks_for_upgrade,
            awaits_continue=self._awaits_continue,
            head_bytes=head_bytes,
        )
        scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "method": method,
            "path": urllib.parse.unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "root_path": "",
            "query_string": query,
            "headers": self._headers,
            "state": self.scope_state,
            "extensions": self.extensions,
            EXCHANGE: exchange,
            **self._addresses,
        }
        if asks_for_upgrade:
            self.offer_upgrade(scope)
        if must_wait:
            # The client did not wait for the response to its last request.
            self.pause_reading()
            self._pipeline.append((exchange, scope))
        else:
            self._fresh = exchange, scope

    def _has_room_for_head(self) -> bool:
        return self._framing_bytes <= self._limits.head_bytes and self._slot.hold(self._count_memory())

    def _count_memory(self) -> int:
        """Return the memory of requests that wait or have long heads, and of the head that is arriving."""
        if self._is_in_head:
            return self._held_bytes + self._framing_bytes + _HEADER_BYTES * len(self._headers)
        return self._held_bytes if self.is_receiving else self._held_bytes + self._framing_bytes

    def _hold_head(self, *, must_wait: bool) -> int:
        """Return the memory of a request that counts until it is answered. Raises ValueError if there is no room.

        A short request without others before it does not count: the number of connections limits these.
        """
        size = 0
        if must_wait or self._framing_bytes > _USUAL_HEAD or len(self._headers) > _USUAL_HEADERS:
            size = len(self._url) + sum([len(name) + len(value) + _HEADER_BYTES for name, value in self._headers])
            size = size + _REQUEST_BYTES if must_wait else size if size > _USUAL_HEAD else 0
        if not self._slot.hold(self._held_bytes + size):
            self._refusal = 503
            raise ValueError("requests that wait and long heads take too much memory")
        self._held_bytes += size
        return size

    def offer_upgrade(self, scope: Scope) -> None:
        """Add to the scope what the application needs to accept another protocol, if there is anything."""

    def on_body(self, body: bytes) -> None:
        self._framing_bytes = max(0, self._framing_bytes - (1 + _FRAMING_SHARE) * len(body))
        exchange = self.exchange
        if exchange is None or exchange.is_complete:
            return
        exchange.feed(body)
        self.hold_unread(exchange.unread)

    def on_message_complete(self) -> None:
        self.is_receiving = False
        if self._owes_body:
            self._owes_body = False
            self.guard.work()
        if self.exchange is not None and not self.exchange.is_complete:
            self.exchange.end_body()

    # Responses

    @property
    def default_headers(self) -> bytes:
        """Lines that every response has."""
        # The server replaces the list when the date changes.
        source, lines = self._default_headers
        if source is not self._state.default_headers:
            lines = write_lines(self._state.default_headers)
            self._default_headers = self._state.default_headers, lines
        return lines

    def _start(self, exchange: Exchange, scope: Scope) -> None:
        self._running = exchange
        task = self.loop.create_task(exchange.run(self._application, scope))
        tasks = self._state.tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def finish(self, exchange: Exchange) -> None:
        """Record that a response is complete, and start the next one or wait for the next request."""
        self._answering -= 1
        if exchange.head_bytes:
            self._held_bytes -= exchange.head_bytes
            self._slot.hold(self._count_memory())
        if not self._answering:
            self.guard.wait()
            if self.is_receiving:
                # The response did not wait for the rest of the request, which may still arrive within a limit.
                self.guard.await_head()
        self._state.total_requests += 1
        if self.transport.is_closing():
            return
        if self._refusal is not None and not self._answering:
            self._write_refusal(self._refusal)
            return
        if self._pipeline:
            self._start(*self._pipeline.popleft())
            if self._pipeline or self._is_deaf:
                return
        elif not self._answering:
            self._idle_since = self.loop.time()
            if self._idle_timer is None:
                self._idle_timer = self.loop.call_later(self._limits.idle_seconds, self._check_idle)
        self.resume_reading()

    def _check_idle(self) -> None:
        """Close the connection if it is idle for too long. One timer serves all requests of a connection."""
        seconds = self._limits.idle_seconds
        if not self._answering and not self.is_receiving:
            seconds = self._idle_since + seconds - self.loop.time()
        if seconds <= 0:
            self._idle_timer = None
            self.transport.close()
        else:
            self._idle_timer = self.loop.call_later(seconds, self._check_idle)


def _address(name: Any) -> tuple[str, int] | None:
    """Return host and port of a socket; None for sockets without a port."""
    return (str(name[0]), int(name[1])) if isinstance(name, tuple | list) and len(name) >= 2 else None
