"""Sending: answers and parts of streams in pieces that clients have to take in time."""

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
"""Time for a whole answer, and the rate at which a client has to read a larger one."""

_PIECES_AT_ONCE: Final = 8
"""Pieces after which other requests get their turn, also if the client reads as fast as it can."""


class UnreadError(Exception):
    """The client has not read what was sent; its connection is ended."""


class Sending:
    """Sends answers. ``outgoing`` counts those on their way."""

    def __init__(self, unread_seconds: float) -> None:
        """``unread_seconds`` is the time for a client to take one piece."""
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
        """Send the body of an answer whose head is sent, and return its size; the connection of a client that does not
        read ends."""
        if isinstance(body, bytes):
            size, pieces = len(body), _cut(body)
        else:
            # Its parts are stored objects, which no copy is made of: a piece at a time is all that it takes.
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
