"""Port forwarding by SPDY in a WebSocket, with two streams for each connection: data and errors."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import aiohttp
from aiohttp import web

from drachma.node.endpoint import spdy
from drachma.node.runtimes import protocol

_log = logging.getLogger(__name__)

PROTOCOL: Final = "SPDY/3.1+portforward.k8s.io"

_MOST_STREAMS: Final = 1024
_MOST_UNREAD: Final = 64
"""Chunks that a port may be behind before all streams of its client wait."""

_CHUNK: Final = 32 * 1024

Connect = Callable[[int], Awaitable[protocol.Connection]]
"""Opens a connection to a port; raises StreamError if nothing listens there."""


class _Stream:
    """A stream of the client, with the data that has arrived; None ends the data."""

    def __init__(self, number: int, headers: Mapping[str, str]) -> None:
        self.number: Final = number
        self.kind: Final = headers.get("streamtype", "")
        self.port: Final = headers.get("port", "")
        # Old clients do not number requests. Their error stream comes right before the data stream.
        self.request: Final = headers.get("requestid") or str(number if self.kind == "error" else number - 2)
        self.arrived: Final[asyncio.Queue[bytes | None]] = asyncio.Queue(maxsize=_MOST_UNREAD)


class PortForwarding:
    """Connections of one client."""

    def __init__(self, websocket: web.WebSocketResponse, connect: Connect, *, pod: str, uid: str) -> None:
        self._websocket = websocket
        self._connect = connect
        self._pod = pod
        self._uid = uid
        self._encoder = spdy.Encoder()
        self._streams: dict[int, _Stream] = {}
        self._unpaired: dict[str, _Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Serve until the client disconnects."""
        decoder = spdy.Decoder()
        try:
            async for message in self._websocket:
                if message.type is not aiohttp.WSMsgType.BINARY:
                    break
                for frame in decoder.feed(message.data):
                    await self._handle(frame)
        except spdy.SpdyError as error:
            _log.debug("port forwarding of pod %s: %s", self._pod, error)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _handle(self, frame: spdy.Frame) -> None:
        match frame:
            case spdy.Opened(number, headers):
                await self._open(_Stream(number, headers))
            case spdy.Data(number, data, is_last):
                stream = self._streams.get(number)
                if stream is not None:
                    if data:
                        await stream.arrived.put(data)
                    if is_last:
                        await stream.arrived.put(None)
            case spdy.Reset(number):
                stream = self._streams.pop(number, None)
                if stream is not None:
                    await stream.arrived.put(None)
            case spdy.Ping(number):
                await self._send(self._encoder.ping(number))
            case spdy.Goodbye():
                pass

    async def _open(self, stream: _Stream) -> None:
        is_port = stream.port.isascii() and stream.port.isdigit() and 0 < int(stream.port[:6]) < 65536
        if not is_port or stream.kind not in ("data", "error") or len(self._streams) >= _MOST_STREAMS:
            await self._send(self._encoder.reset(stream.number))
            return
        self._streams[stream.number] = stream
        await self._send(self._encoder.reply(stream.number))
        partner = self._unpaired.pop(stream.request, None)
        if partner is None or partner.kind == stream.kind:
            self._unpaired[stream.request] = stream
            return
        data, error = (stream, partner) if stream.kind == "data" else (partner, stream)
        task = asyncio.create_task(self._forward(data, error), name=f"port {data.port} of pod {self._pod}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, data: _Stream, error: _Stream) -> None:
        try:
            reader, writer = await self._connect(int(data.port))
        except protocol.StreamError as refusal:
            text = f"error forwarding port {data.port} to pod {self._pod}, uid {self._uid}: {refusal}"
            await self._send(self._encoder.data(error.number, text.encode()))
        else:
            await self._join(data, reader, writer)
        for stream in (data, error):
            self._streams.pop(stream.number, None)
            await self._send(self._encoder.data(stream.number, b"", is_last=True))

    async def _join(self, data: _Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def send() -> None:
            while (chunk := await data.arrived.get()) is not None:
                writer.write(chunk)
                await writer.drain()
            with contextlib.suppress(OSError, NotImplementedError):
                writer.write_eof()

        sending = asyncio.create_task(send())
        try:
            while chunk := await reader.read(_CHUNK):
                await self._send(self._encoder.data(data.number, chunk))
        except OSError:
            # The container has reset the connection, which ends the client's stream.
            pass
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            writer.close()

    async def _send(self, frame: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            await self._websocket.send_bytes(frame)
