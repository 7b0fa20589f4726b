"""Sending responses and streams in pieces that clients have to read in time."""

import asyncio
import itertools
import time
from collections.abc import Iterable, Iterator
from typing import Final

from drachma.server import deadlines
from drachma.server.wire import outgoing, responses
from drachma.server.wire.requests import Request, Send

PIECE: Final = 64 * 1024
"""Bytes that are written at once; a transport buffers little more than one piece, and refuses another."""

_LEAST_SECONDS: Final = 60.0
_BYTES_PER_SECOND: Final = 64 * 1024
"""Rate at which a client has to read a large answer."""

_PIECES_AT_ONCE: Final = 8
"""Pieces after which other requests get their turn, even if the client reads as fast as possible."""


class UnreadError(Exception):
    """The client does not read; its connection is closed."""


class Sending:
    """Sends answers. ``outgoing`` counts the bytes that are not sent yet."""

    def __init__(self, unread_seconds: float) -> None:
        """``unread_seconds`` is the time for a client to read one piece."""
        self.outgoing: Final = outgoing.Outgoing(clock=time.monotonic)
        self._deadlines: Final = deadlines.Deadlines(unread_seconds)

    async def part(self, request: Request, send: Send, data: bytes) -> None:
        """Send a part of a stream.

        Raises:
            UnreadError: the client does not read.
        """
        try:
            if len(data) <= PIECE:
                with self._deadlines.start():
                    await send({"type": "http.response.body", "body": data, "more_body": True})
            else:
                await self._pieces(request, send, _cut(data), size=len(data))
        except TimeoutError:
            request.connection.give_up()
            raise UnreadError from None

    async def body(self, request: Request, send: Send, body: responses.Body) -> int:
        """Send the body of a response after its head, and return its size.

        The connection of a client that does not read is closed.
        """
        if isinstance(body, bytes):
            size, pieces = len(body), _cut(body)
        else:
            # Its parts are stored objects, which are not copied: it takes one piece at a time.
            size, pieces = body.size, _cut_all(body.parts())
        try:
            async with asyncio.timeout(_LEAST_SECONDS + size / _BYTES_PER_SECOND):
                await self._pieces(request, send, pieces, size=size if isinstance(body, bytes) else PIECE)
            await send({"type": "http.response.body", "body": b""})
        except (TimeoutError, UnreadError):
            request.connection.give_up()
        return size

    async def _pieces(self, request: Request, send: Send, pieces: Iterable[bytes], *, size: int) -> None:
        shipment = self.outgoing.hold(size, request.connection.give_up)
        try:
            for number, piece in enumerate(pieces, start=1):
                with self._deadlines.start():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                if shipment.is_given_up:
                    raise UnreadError
                shipment.move()
                if not number % _PIECES_AT_ONCE:
                    await asyncio.sleep(0)
        finally:
            shipment.release()


def _cut(data: bytes) -> Iterator[bytes]:
    return (data[start : start + PIECE] for start in range(0, len(data), PIECE))


def _cut_all(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield pieces of parts, which may be far smaller or far larger."""
    gathered: list[bytes] = []
    size = 0
    for part in itertools.chain.from_iterable(_cut(part) if len(part) > PIECE else (part,) for part in parts):
        if size + len(part) > PIECE and gathered:
            yield b"".join(gathered)
            gathered, size = [], 0
        gathered.append(part)
        size += len(part)
    if gathered:
        yield b"".join(gathered)
