"""Frames on a stream socket: four bytes with the length of a message, most significant first, and the message.

Both ends of a connection between a component's process and the API server's process use it. A frame that is longer than
the limit, or cannot be decoded, ends the connection.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final, Generic, TypeVar, cast

import msgspec

from drachma import errors
from drachma.client import messages

_log = logging.getLogger(__name__)

IncomingT = TypeVar("IncomingT")

_HEAD_BYTES: Final = 4
_MOST_BYTES: Final = 2**30
"""Longest message. A complete list of a large collection is one message."""
_READ_BYTES: Final = 2**20
_HIGH_WATER_BYTES: Final = 4 * 2**20
"""Unsent bytes from which a sender that can wait does so."""


def receive_data(connection: socket.socket) -> bytes:
    """Wait for one frame on a blocking socket and return its data.

    Raises:
        errors.UnreachableError: the other end has closed the connection.
    """
    return _receive_exactly(connection, int.from_bytes(_receive_exactly(connection, _HEAD_BYTES), "big"))


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), _READ_BYTES))
        if not part:
            raise errors.UnreachableError("the other process has closed the connection")
        data += part
    return bytes(data)


class Frames(asyncio.Protocol, Generic[IncomingT]):
    """One end of a connection. ``receive`` gets each message, and ``lose`` is called once at the end."""

    def __init__(
        self,
        decode: Callable[[bytearray], IncomingT],
        *,
        receive: Callable[[IncomingT], None],
        lose: Callable[[], None],
    ) -> None:
        self._decode: Final = decode
        self._receive: Final = receive
        self._lose: Final = lose
        self._buffer = bytearray()
        self._unsent: Final[list[bytes]] = []
        self._transport: asyncio.Transport | None = None
        self._writable: Final = asyncio.Event()
        self._writable.set()

    async def attach(self, connection: socket.socket) -> None:
        """Use a connected socket."""
        await asyncio.get_running_loop().create_connection(lambda: self, sock=connection)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_HIGH_WATER_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._writable.set()
        self._lose()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    @property
    def is_connected(self) -> bool:
        return self._transport is not None

    def send(self, message: msgspec.Struct) -> None:
        """Send a message; a lost connection ignores it."""
        self.send_data(messages.encode(message))

    def send_data(self, data: bytes) -> None:
        """Send a frame with data that are no message, which the other end reads with ``receive_data``."""
        if self._transport is None:
            return
        if not self._unsent:
            # Many messages are sent in one step of the event loop, and one system call takes all of them.
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.extend((len(data).to_bytes(_HEAD_BYTES, "big"), data))

    def _flush(self) -> None:
        if self._transport is not None and self._unsent:
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    async def wait_writable(self) -> None:
        """Return when the other end has received most of what was sent, or is gone."""
        await self._writable.wait()

    def close(self) -> None:
        """Send the rest and close the connection."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        position = 0
        while len(buffer) - position >= _HEAD_BYTES:
            start = position + _HEAD_BYTES
            size = int.from_bytes(buffer[position:start], "big")
            if size > _MOST_BYTES:
                self._abort(f"a message of {size} bytes is longer than {_MOST_BYTES}")
                return
            if len(buffer) < start + size:
                break
            position = start + size
            try:
                message = self._decode(buffer[start:position])
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                self._abort(f"a message cannot be decoded: {error}")
                return
            self._receive(message)
        del buffer[:position]

    def _abort(self, problem: str) -> None:
        _log.error("connection between processes: %s", problem)
        if self._transport is not None:
            self._transport.abort()
