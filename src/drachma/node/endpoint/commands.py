"""Sessions with containers over WebSocket: the channels of ``v4.channel.k8s.io`` and ``v5.channel.k8s.io``.

The first byte of a message is its channel: 0 for input, 1 and 2 for output, 3 for the exit status, 4 for the size of
the terminal, and in v5 255 for the end of a channel.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any, Final

import aiohttp
import msgspec
from aiohttp import web

from drachma.node.logs.log import STDERR, STDOUT
from drachma.node.runtimes.protocol import Exit, Session

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")

_INPUT, _STATUS, _RESIZE, _CLOSE = 0, 3, 4, 255
_OUTPUTS: Final = {STDOUT: 1, STDERR: 2}


class Streams(msgspec.Struct, frozen=True, kw_only=True):
    """Streams that the client requests."""

    has_input: bool = False
    has_output: bool = False
    has_errors: bool = False
    has_terminal: bool = False

    def wants(self, stream: str) -> bool:
        return self.has_output if stream == STDOUT else self.has_errors


async def serve(websocket: web.WebSocketResponse, session: Session, streams: Streams) -> None:
    """Carry a session over a WebSocket until the session ends or the client disconnects."""
    receiving = asyncio.create_task(_receive(websocket, session, streams))
    sending = asyncio.create_task(_send_output(websocket, session, streams))
    try:
        await asyncio.wait((receiving, sending), return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            await sending
    finally:
        for task in (receiving, sending):
            task.cancel()
        await asyncio.gather(receiving, sending, return_exceptions=True)
        await session.close()


async def refuse(websocket: web.WebSocketResponse, message: str) -> None:
    """Report that there is no session, and close the WebSocket."""
    content = {
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    }
    await _send(websocket, _STATUS, json.dumps(content).encode())
    await websocket.close()


async def _receive(websocket: web.WebSocketResponse, session: Session, streams: Streams) -> None:
    async for message in websocket:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == _INPUT and streams.has_input:
            await session.feed(data)
        elif channel == _CLOSE and data[:1] == bytes([_INPUT]):
            await session.end_input()
        elif channel == _RESIZE:
            _resize(session, data)


def _resize(session: Session, data: bytes) -> None:
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
        size: Any = json.loads(data)
        width, height = int(size["Width"]), int(size["Height"])
        if 0 < width < 1 << 16 and 0 < height < 1 << 16:
            session.resize(width, height)


async def _send_output(websocket: web.WebSocketResponse, session: Session, streams: Streams) -> None:
    async for stream, data in session.output():
        if streams.wants(stream):
            await _send(websocket, _OUTPUTS[stream], data)
    await _send(websocket, _STATUS, json.dumps(_status(await session.wait())).encode())
    await websocket.close()


async def _send(websocket: web.WebSocketResponse, channel: int, data: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        await websocket.send_bytes(bytes([channel]) + data)


def _status(exit_: Exit) -> dict[str, Any]:
    if exit_.code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {exit_.code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(exit_.code)}]},
    }
