"""Requests that nodes answer, passed on: to the agent of the node, as it comes, and its answer back.

A request that asks for another protocol, as ``kubectl exec`` does, becomes a tunnel: what is said in it is between the
client and the node, and this server neither understands nor changes it. So whatever both of them speak works, WebSocket
as well as SPDY.
"""

import asyncio
import contextlib
import os
import pathlib
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import httptools
import msgspec

from drachma.server import status
from drachma.server.pipeline.answer import Elsewhere
from drachma.server.wire import tunnel
from drachma.server.wire.requests import Request, Send

_CONNECT_SECONDS: Final = 30.0
_TUNNEL_SECONDS: Final = 60.0
_HEAD_BYTES: Final = 64 * 1024
_CHUNK: Final = 64 * 1024
_REFUSAL_BYTES: Final = 50_000
"""How much of what a node says about a refusal is passed on, as upstream."""

_ASKED_TOGETHER: Final = 32
_ANSWER_SECONDS: Final = 5.0
_DOCUMENT_BYTES: Final = 32 * 1024 * 1024
"""How many nodes are asked at once for documents, how long each has, and how much it may say."""

_SWITCHING: Final = 101
_HOP_BY_HOP: Final = frozenset(
    {b"connection", b"host", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"content-length"}
)
_SECRET: Final = (b"authorization", b"impersonate-", b"cookie", b"x-remote-")
"""Headers by which clients say who they are to this server, of which nodes need not know."""


class NodeProxy:
    """Goes to nodes with the credentials of this server."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._tunnels: set[tunnel.Tunnel] = set()

    def close(self) -> None:
        """Ends tunnels, for which nobody need wait."""
        for each in list(self._tunnels):
            each.close()

    async def pass_on(self, where: Elsewhere, request: Request, send: Send, *, is_log: bool) -> int:
        """Answers a request with what a node says; its code.

        Raises:
            status.StatusError: the node cannot be reached, refuses a log, or the request is not one for a tunnel.
        """
        client: tunnel.Tunnel | None = (
            (request.scope.get("extensions") or {}).get(tunnel.EXTENSION, {}).get(tunnel.TUNNEL)
        )
        if where.is_upgrade and client is None:
            raise status.bad_request("Upgrade request required")
        told = await _head(where, request, is_upgrade=client is not None)
        async with self._connected(where) as (reader, writer), _gives_up(request, writer, is_tunnel=client is not None):
            writer.write(told)
            await writer.drain()
            try:
                # Whoever waits for an answer and goes is noticed; whoever waits for a tunnel is not.
                async with asyncio.timeout(None if client is None else _TUNNEL_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                code = int(head.split(b" ", 2)[1])
            except (OSError, EOFError, asyncio.LimitOverrunError, ValueError, IndexError) as error:
                problem = str(error) or "no answer in time"
                raise status.unclassified(
                    f"error reading the answer of {where.host}:{where.port}: {problem}"
                ) from error
            if code == _SWITCHING and client is not None:
                await self._join(client, head, reader, writer)
                return code
            answer = _Answer(head)
            if is_log and not 200 <= code <= 206:
                raise await _refusal(code, answer, reader)
            await _send(code, answer, reader, send)
            return code

    async def ask(self, places: Mapping[str, Elsewhere]) -> Mapping[str, Mapping[str, Any]]:
        """The documents at some places, each under the name of its place; those that cannot be had are missing."""
        together = asyncio.Semaphore(_ASKED_TOGETHER)

        async def ask_one(where: Elsewhere) -> Any:
            async with together, asyncio.timeout(_ANSWER_SECONDS):
                return msgspec.json.decode(await self._fetch(where))

        answers = await asyncio.gather(*map(ask_one, places.values()), return_exceptions=True)
        return {name: answer for name, answer in zip(places, answers, strict=True) if isinstance(answer, dict)}

    async def _fetch(self, where: Elsewhere) -> bytes:
        async with self._connected(where) as (reader, writer):
            host = f"host: {where.host}:{where.port}"
            writer.write(f"GET {where.path} HTTP/1.1\r\n{host}\r\nconnection: close\r\n\r\n".encode())
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            data = bytearray()
            async for chunk in _Answer(head).chunks(reader):
                data += chunk
                if len(data) > _DOCUMENT_BYTES:
                    raise ValueError(f"an answer of more than {_DOCUMENT_BYTES} bytes")
            return bytes(data)

    @contextlib.asynccontextmanager
    async def _connected(self, where: Elsewhere) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        context = self._context if not where.is_foreign else unverified()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    where.host, where.port, ssl=context if where.is_secure else None, limit=_HEAD_BYTES
                )
        except (OSError, TimeoutError, ValueError, OverflowError) as error:
            # Nodes say what they like: a host that cannot be a name is a ValueError, a port that is none overflows.
            raise status.unclassified(
                f"error dialing backend: dial tcp {where.host}:{where.port}: {_problem(error)}"
            ) from error
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
    """An answer as it is parsed; what has come of its body is in ``body``."""

    def __init__(self, head: bytes) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = bytearray()
        self.is_complete = False
        self._parser = httptools.HttpResponseParser(self)
        self._parser.feed_data(head)

    def feed(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() not in _HOP_BY_HOP:
            self.headers.append((name.lower(), value))

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.is_complete = True

    async def chunks(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        """The body as it comes; it ends early where the node does."""
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
            except (OSError, httptools.HttpParserError):
                return


async def _head(where: Elsewhere, request: Request, *, is_upgrade: bool) -> bytes:
    """The request as it is passed on, with its body."""
    headers: list[tuple[bytes, bytes]] = [
        (name, value)
        for name, value in request.scope["headers"]
        if name not in _HOP_BY_HOP and not name.startswith(_SECRET)
    ]
    body = b""
    if is_upgrade:
        headers += [(b"connection", b"Upgrade"), (b"upgrade", request.header(b"upgrade").encode("latin-1"))]
    else:
        headers.append((b"connection", b"close"))
        if request.method not in ("GET", "HEAD"):
            body = await request.body()
            headers.append((b"content-length", str(len(body)).encode()))
    host = f"[{where.host}]" if ":" in where.host else where.host
    path = where.path + (f"?{where.query}" if where.query else "")
    lines = [f"{request.method} {path} HTTP/1.1".encode(), f"host: {host}:{where.port}".encode()]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def _send(code: int, answer: _Answer, reader: asyncio.StreamReader, send: Send) -> None:
    await send({"type": "http.response.start", "status": code, "headers": answer.headers})
    await send({"type": "http.response.body", "body": b"", "more_body": True})
    async for chunk in answer.chunks(reader):
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _refusal(code: int, answer: _Answer, reader: asyncio.StreamReader) -> status.StatusError:
    """What a node says about a log that it does not give, in upstream's words."""
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


def _problem(error: OSError | ValueError | OverflowError) -> str:
    """What is wrong with a connection, as Go says it."""
    if isinstance(error, TimeoutError):
        return "i/o timeout"
    if not isinstance(error, OSError):
        return f"lookup: {error}"
    return f"connect: {os.strerror(error.errno).lower()}" if error.errno else str(error)


@contextlib.asynccontextmanager
async def _gives_up(request: Request, writer: asyncio.StreamWriter, *, is_tunnel: bool) -> AsyncIterator[None]:
    """Lets go of the node when the client has gone, which a tunnel notices by itself."""

    async def watch() -> None:
        await request.disconnected()
        writer.close()

    task = None if is_tunnel else asyncio.create_task(watch())
    try:
        yield
    finally:
        if task is not None:
            task.cancel()


def unverified(files: tuple[pathlib.Path, pathlib.Path] | None = None) -> ssl.SSLContext:
    """How nodes are reached whose certificates nobody has signed, as upstream does by default.

    ``files`` are the certificate that this server shows and its key.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if files is not None:
        context.load_cert_chain(*files)
    return context
