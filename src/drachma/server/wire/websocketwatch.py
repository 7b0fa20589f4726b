"""Watches over WebSocket (RFC 6455): every event is a text message, as upstream sends it.

A :class:`WebSocket` stands in the place of an HTTP response: it takes the same ASGI messages as the send function of a
request, so that a stream of events does not know which of the two carries it. Clients only send control frames.
"""

import asyncio
import base64
import hashlib
import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from drachma.server import status
from drachma.server.wire import tunnel
from drachma.server.wire.requests import Request

_SALT: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_VERSION: Final = "13"
_TEXT, _CLOSE, _PING, _PONG = 0x1, 0x8, 0x9, 0xA
_FINAL: Final = 0x80
_MASKED: Final = 0x80
_NORMAL: Final = struct.pack("!H", 1000)
_MOST_CONTROL_BYTES: Final = 125
"""Largest payload of a control frame. Longer frames carry data, which a watch does not read."""

_FRAMES_AT_ONCE: Final = 1000
"""Frames of a client after which other requests get their turn."""


def requested(request: Request) -> "WebSocket | None":
    """Return the WebSocket that a request asks for, or None.

    Raises:
        status.StatusError: the handshake is invalid, or a page of another origin asks.
    """
    extension = (request.scope.get("extensions") or {}).get(tunnel.EXTENSION)
    if extension is None or request.header(b"upgrade").lower() != "websocket":
        return None
    key, version = request.header(b"sec-websocket-key"), request.header(b"sec-websocket-version")
    if version != _VERSION or not key:
        raise status.bad_request(f"a WebSocket needs Sec-WebSocket-Key and version {_VERSION}, not {version!r}")
    request.require_same_origin()
    protocols = [each.strip() for each in request.header(b"sec-websocket-protocol").split(",") if each.strip()]
    return WebSocket(extension[tunnel.TUNNEL], key, protocols[0] if protocols else "")


class _Frames(NamedTuple):
    """Frames of a client."""

    ping: bytes | None
    """Payload of the last ping; RFC 6455 leaves others without an answer."""
    is_goodbye: bool = False
    """True if the client closes the WebSocket, or sends data that no watch reads."""
    has_more: bool = False
    """True if further frames may have arrived."""


class WebSocket:
    """The server's side of a connection that carries one watch."""

    def __init__(self, client: tunnel.Tunnel, key: str, protocol: str) -> None:
        """``protocol`` is the subprotocol that is confirmed, if the client names one."""
        self._client: Final = client
        self._key: Final = key
        self._protocol: Final = protocol
        self._line = b""
        self._unread = b""

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send an ASGI message of a response: its start is the handshake, and each line of its body a message."""
        if message["type"] == "http.response.start":
            self._client.open(self._handshake())
            return
        body = message.get("body", b"")
        *lines, self._line = (self._line + body).split(b"\n")
        if lines:
            await self._client.write(b"".join(_frame(_TEXT, line + b"\n") for line in lines))
        if not message.get("more_body"):
            await self._client.write(_frame(_CLOSE, _NORMAL))
            self._client.close()

    async def disconnected(self) -> None:
        """Answer pings. Return once the client has closed the WebSocket or has disconnected."""
        while data := await self._client.read():
            self._unread += data
            while True:
                frames = self._next_frames()
                if frames.ping is not None:
                    await self._client.write(_frame(_PONG, frames.ping))
                if frames.is_goodbye:
                    return
                if not frames.has_more:
                    break
                await asyncio.sleep(0)

    def _next_frames(self) -> _Frames:
        """Take the next frames that are complete. A long frame, and one with data, ends the WebSocket."""
        data, begin = self._unread, 0
        ping: bytes | None = None
        for _ in range(_FRAMES_AT_ONCE):
            if len(data) < begin + 2:
                break
            code, size = data[begin] & 0x0F, data[begin + 1] & ~_MASKED
            if size > _MOST_CONTROL_BYTES or not data[begin + 1] & _MASKED or code not in (_PING, _PONG):
                return _Frames(ping, is_goodbye=True)
            payload, end = begin + 6, begin + 6 + size
            if len(data) < end:
                break
            if code == _PING:
                mask = data[begin + 2 : payload]
                ping = bytes(byte ^ mask[place % 4] for place, byte in enumerate(data[payload:end]))
            begin = end
        else:
            self._unread = data[begin:]
            return _Frames(ping, has_more=True)
        self._unread = data[begin:]
        return _Frames(ping)

    def _handshake(self) -> bytes:
        accepted_key = base64.b64encode(hashlib.sha1(self._key.encode() + _SALT).digest())
        lines = [
            b"HTTP/1.1 101 Switching Protocols",
            b"Upgrade: websocket",
            b"Connection: Upgrade",
            b"Sec-WebSocket-Accept: " + accepted_key,
        ]
        if self._protocol:
            lines.append(b"Sec-WebSocket-Protocol: " + self._protocol.encode("latin-1"))
        return b"\r\n".join([*lines, b"", b""])


def _frame(code: int, payload: bytes) -> bytes:
    size = len(payload)
    if size <= _MOST_CONTROL_BYTES:
        head = struct.pack("!BB", _FINAL | code, size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", _FINAL | code, 126, size)
    else:
        head = struct.pack("!BBQ", _FINAL | code, 127, size)
    return head + payload
