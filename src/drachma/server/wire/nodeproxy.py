"""Proxy to nodes: requests are passed on to the node's agent, and its answers back.

A request that asks for another protocol, as ``kubectl exec`` does, becomes a tunnel. This server neither reads nor
changes the bytes in it, so both WebSocket and SPDY work.

Nothing of a request reaches the node unencoded: paths are percent-encoded, the pipeline encodes queries, and headers
with line ends are refused.
"""

import asyncio
import contextlib
import ssl
import urllib.parse
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import httptools
import msgspec

from drachma.server import status
from drachma.server.pipeline.answer import NodeEndpoint
from drachma.server.wire import nodeconnections, tunnel
from drachma.server.wire.requests import Request, Send

_TUNNEL_SECONDS: Final = 60.0
_CHUNK: Final = 64 * 1024
_REFUSAL_BYTES: Final = 50_000
"""Bytes of a node's refusal that are passed on, as in upstream."""

_ASKED_TOGETHER: Final = 32
_ANSWER_SECONDS: Final = 5.0
_DOCUMENT_BYTES: Final = 32 * 1024 * 1024
"""Limits of document requests: concurrent nodes, time for each, and bytes of each."""

_OVERHEAD_BYTES: Final = 1 << 20
"""Bytes of an answer that are neither its head nor its body: sizes of chunks and trailers."""

_BROKEN: Final = (
    OSError, EOFError, asyncio.LimitOverrunError, ValueError, IndexError, httptools.HttpParserError
)  # fmt: skip
"""Errors of an answer that is not HTTP, or that ends early."""

_SWITCHING: Final = 101
_HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"host",
        b"keep-alive",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"content-length",
        b"expect",
    }
)
_SECRET: Final = (b"authorization", b"impersonate-", b"cookie", b"origin", b"x-remote-")
"""Headers by which clients identify themselves to this server; nodes do not get them."""

_CROSS_ORIGIN: Final = b"access-control-allow-"
"""Headers by which a pod or node would open the API server's origin to web pages; clients do not get them."""

_PATH_CHARACTERS: Final = "/$&+,:;=@"
"""Characters of a path that need no encoding, as in Go."""
_LINE_ENDS: Final = frozenset(b"\r\n\0")


class NodeProxy:
    """Connects to nodes with the credentials of this server."""

    def __init__(self, dialer: nodeconnections.Dialer) -> None:
        self._dialer = dialer
        self._tunnels: set[tunnel.Tunnel] = set()

    def close(self) -> None:
        """End all tunnels."""
        for each in list(self._tunnels):
            each.close()

    async def pass_on(self, where: NodeEndpoint, request: Request, send: Send, *, is_log: bool) -> int:
        """Answer a request with the response of a node; return its status code.

        Raises:
            status.StatusError: the node cannot be reached or refuses a log, the request is not one for a tunnel, or a
                page of another server opens one.
        """
        client: tunnel.Tunnel | None = (
            (request.scope.get("extensions") or {}).get(tunnel.EXTENSION, {}).get(tunnel.TUNNEL)
        )
        if where.is_upgrade and client is None:
            raise status.bad_request("Upgrade request required")
        if client is not None:
            request.require_same_origin()
        request_head = await _head(where, request, is_upgrade=client is not None)
        async with (
            self._connect(where) as (reader, writer),
            _close_with_client(request, writer, is_tunnel=client is not None),
        ):
            writer.write(request_head)
            await writer.drain()
            try:
                # The disconnect of a client is noticed while it waits for an answer, not while it waits for a tunnel.
                async with asyncio.timeout(None if client is None else _TUNNEL_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                code = int(head.split(b" ", 2)[1])
                is_switch = code == _SWITCHING and client is not None
                answer = None if is_switch else _Answer(head, code)
            except _BROKEN as error:
                problem = str(error) or "no answer in time"
                raise status.unclassified(
                    f"error reading the answer of {where.host}:{where.port}: {problem}"
                ) from error
            if answer is None:
                assert client is not None, "the client asked for an upgrade"
                await self._join(client, head, reader, writer)
                return code
            if is_log and not 200 <= code <= 206:
                raise await _refusal(code, answer, reader)
            await _send(code, answer, reader, send)
            return code

    async def ask(self, places: Mapping[str, NodeEndpoint]) -> Mapping[str, Mapping[str, Any]]:
        """Return the documents at some places by name; those that cannot be fetched are missing."""
        together = asyncio.Semaphore(_ASKED_TOGETHER)

        async def ask_one(where: NodeEndpoint) -> Any:
            async with together:
                return msgspec.json.decode((await self.fetch(where))[1])

        answers = await asyncio.gather(*map(ask_one, places.values()), return_exceptions=True)
        return {name: answer for name, answer in zip(places, answers, strict=True) if isinstance(answer, dict)}

    async def fetch(self, where: NodeEndpoint) -> tuple[int, bytes]:
        """Return the status code and the body of the answer to a GET.

        Raises:
            status.StatusError: the address is not allowed, or nothing answers there.
            TimeoutError: the answer takes too long.
            Exception: the answer is too large or is not HTTP, as ``_BROKEN`` lists them.
        """
        async with asyncio.timeout(_ANSWER_SECONDS), self._connect(where) as (reader, writer):
            more = [(name.encode("latin-1"), value.encode()) for name, value in where.headers]
            writer.write(_encode_head("GET", where, [(b"connection", b"close"), *more]))
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            code = int(head.split(b" ", 2)[1])
            data = bytearray()
            async for chunk in _Answer(head, code).chunks(reader):
                data += chunk
                if len(data) > _DOCUMENT_BYTES:
                    raise ValueError(f"an answer of more than {_DOCUMENT_BYTES} bytes")
            return code, bytes(data)

    @contextlib.asynccontextmanager
    async def _connect(self, where: NodeEndpoint) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await self._dialer.dial(where)
        try:
            yield reader, writer
        finally:
            writer.close()
            with contextlib.suppress(OSError, ssl.SSLError):
                await writer.wait_closed()

    async def _join(
        self, client: tunnel.Tunnel, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        client.open(head)
        self._tunnels.add(client)
        try:
            await tunnel.join(client, reader, writer)
        finally:
            self._tunnels.discard(client)


class _Answer:
    """An answer while it is parsed; ``body`` has the body so far."""

    def __init__(self, head: bytes, code: int) -> None:
        """Raise ValueError for an informational code, and httptools.HttpParserError for bytes that are not HTTP."""
        if not 200 <= code <= 599:
            raise ValueError(f"status code {code}")
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = bytearray()
        self.is_complete = False
        self._has_headers = False
        self._overhead = 0
        self._parser = httptools.HttpResponseParser(self)
        self._parser.feed_data(head)

    def feed(self, data: bytes) -> None:
        """Parse bytes after the head. Raises ValueError if too many of them are not of the body."""
        self._overhead += len(data)
        self._parser.feed_data(data)
        if self._overhead > _OVERHEAD_BYTES:
            raise ValueError(f"more than {_OVERHEAD_BYTES} bytes around the body")

    def on_header(self, name: bytes, value: bytes) -> None:
        # Headers after the head are trailers, which are not passed on.
        name = name.lower()
        if not (self._has_headers or name in _HOP_BY_HOP or name.startswith(_CROSS_ORIGIN)):
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._has_headers = True

    def on_body(self, data: bytes) -> None:
        self._overhead -= len(data)
        self.body += data

    def on_message_complete(self) -> None:
        self.is_complete = True

    async def chunks(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; it ends early if the node closes the connection."""
        while True:
            if self.body:
                yield bytes(self.body)
                self.body.clear()
            if self.is_complete:
                return
            try:
                data = await reader.read(_CHUNK)
                if not data:
                    return
                self.feed(data)
            except (OSError, ValueError, httptools.HttpParserError):
                return


async def _head(where: NodeEndpoint, request: Request, *, is_upgrade: bool) -> bytes:
    """Return the request to the node, with its body."""
    headers: list[tuple[bytes, bytes]] = [
        (name, value)
        for name, value in request.scope["headers"]
        if name not in _HOP_BY_HOP and not name.startswith(_SECRET)
    ]
    headers += [(name.encode("latin-1"), value.encode()) for name, value in where.headers]
    body = b""
    if is_upgrade:
        headers += [(b"connection", b"Upgrade"), (b"upgrade", request.header(b"upgrade").encode("latin-1"))]
    else:
        headers.append((b"connection", b"close"))
        if request.method not in ("GET", "HEAD"):
            body = await request.body()
            headers.append((b"content-length", str(len(body)).encode()))
    return _encode_head(request.method, where, headers) + body


def _encode_head(method: str, where: NodeEndpoint, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return the head of a request to a node.

    Raises:
        status.StatusError: a header has a line end in it (400).
    """
    host = f"[{where.host}]" if ":" in where.host else where.host
    path = urllib.parse.quote(where.path, safe=_PATH_CHARACTERS, errors="replace")
    target = f"{path}?{where.query}" if where.query else path
    # A host that is not ASCII is no host name, and dialling refuses it.
    lines = [f"{method} {target} HTTP/1.1".encode("ascii"), f"host: {host}:{where.port}".encode("ascii", "replace")]
    for name, value in headers:
        if not _LINE_ENDS.isdisjoint(name + value):
            raise status.bad_request(f"header {name.decode('latin-1')!r}: must not have a line end in it")
        lines.append(name + b": " + value)
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def _send(code: int, answer: _Answer, reader: asyncio.StreamReader, send: Send) -> None:
    await send({"type": "http.response.start", "status": code, "headers": answer.headers})
    await send({"type": "http.response.body", "body": b"", "more_body": True})
    async for chunk in answer.chunks(reader):
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _refusal(code: int, answer: _Answer, reader: asyncio.StreamReader) -> status.StatusError:
    """Return the refusal of a log by a node, in upstream's words."""
    data = bytearray()
    async for chunk in answer.chunks(reader):
        data += chunk
        if len(data) >= _REFUSAL_BYTES:
            break
    text = bytes(data[:_REFUSAL_BYTES]).decode(errors="replace")
    match code:
        case 500:
            return status.internal(text)
        case 400:
            return status.bad_request(text)
        case 404:
            message = "the server could not find the requested resource"
            causes = [{"reason": "UnexpectedServerResponse", "message": text}]
            return status.failure(404, "NotFound", message, details={"kind": "pods/log", "causes": causes})
    return status.failure(code, "", text or f"the server responded with the status code {code}")


@contextlib.asynccontextmanager
async def _close_with_client(request: Request, writer: asyncio.StreamWriter, *, is_tunnel: bool) -> AsyncIterator[None]:
    """Close the connection to the node when the client disconnects; a tunnel notices that itself."""

    async def watch() -> None:
        await request.disconnected()
        writer.close()

    task = None if is_tunnel else asyncio.create_task(watch())
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
