"""A connection of the server that is no longer HTTP: bytes in both directions, for as long as both ends like.

The listener makes one for every request that asks for another protocol, and puts it into the ASGI scope; who answers
such a request with a tunnel takes the connection over by :meth:`Tunnel.open`.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

EXTENSION: Final = "drachma.tunnel"
TUNNEL: Final = "tunnel"
"""Where the listener puts it."""

_MOST_UNREAD: Final = 256 * 1024


class Flow(Protocol):
    """How a transport is told to wait."""

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    async def drain(self) -> None:
        """Returns when there is room for more to be written."""


class Tunnel:
    """The client's side of a tunnel."""

    def __init__(self, transport: Any, flow: Flow, take: Callable[[], None]) -> None:
        """``take`` tells the listener that the connection is taken over."""
        self._transport = transport
        self._flow = flow
        self._take = take
        self._unread = bytearray()
        self._has_ended = False
        self._more = asyncio.Event()

    def open(self, head: bytes) -> None:
        """Takes the connection over; ``head`` is what answers the request."""
        self._take()
        self._transport.write(head)
        # The head is held back until something follows.
        self._transport.write(b"")

    async def read(self) -> bytes:
        """What the client sends, or nothing when it has gone."""
        while not self._unread and not self._has_ended:
            self._more.clear()
            await self._more.wait()
        data = bytes(self._unread)
        self._unread.clear()
        self._flow.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        """Sends something to the client, when it takes it."""
        self._transport.write(data)
        await self._flow.drain()

    def close(self) -> None:
        self.end()
        self._transport.close()

    # For the listener

    def feed(self, data: bytes) -> None:
        """The client sent something."""
        self._unread += data
        if len(self._unread) > _MOST_UNREAD:
            self._flow.pause_reading()
        self._more.set()

    def end(self) -> None:
        """The client has gone."""
        self._has_ended = True
        self._more.set()


async def join(client: Tunnel, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carries bytes between a client and whoever is behind the streams, until one of them ends."""

    async def upstream() -> None:
        while data := await client.read():
            writer.write(data)
            await writer.drain()

    async def downstream() -> None:
        while data := await reader.read(_MOST_UNREAD):
            await client.write(data)

    tasks = [asyncio.create_task(upstream()), asyncio.create_task(downstream())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        client.close()
