"""Tunnels: connections that are no longer HTTP and carry bytes in both directions.

The listener makes one for every request that asks for another protocol, and puts it into the ASGI scope. The
application takes the connection over by :meth:`Tunnel.open`.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

EXTENSION: Final = "drachma.tunnel"
TUNNEL: Final = "tunnel"
"""Key of the tunnel in the ASGI extension."""

_MOST_UNREAD: Final = 256 * 1024
"""Bytes of a node that are read at once."""


class Flow(Protocol):
    """Flow control of a connection."""

    def hold_unread(self, size: int) -> None:
        """Count the bytes that have arrived and are not taken yet, and leave others to the kernel if they are many."""

    def resume_reading(self) -> None: ...

    async def drain(self) -> None:
        """Return when there is room for more bytes."""


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
        """Take the connection over; ``head`` is the response to the request."""
        self._take()
        self._transport.write(head)

    async def read(self) -> bytes:
        """Return bytes from the client; empty when it has disconnected."""
        while not self._unread and not self._has_ended:
            self._more.clear()
            await self._more.wait()
        data = bytes(self._unread)
        self._unread.clear()
        self._flow.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        """Send bytes to the client, and wait until there is room for more."""
        self._transport.write(data)
        await self._flow.drain()

    def close(self) -> None:
        self.end()
        self._transport.close()

    # For the listener

    def feed(self, data: bytes) -> None:
        """Pass in bytes from the client."""
        self._unread += data
        self._flow.hold_unread(len(self._unread))
        self._more.set()

    def end(self) -> None:
        """Record that the client has disconnected."""
        self._has_ended = True
        self._more.set()


async def join(client: Tunnel, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes between a client and a pair of streams until one of them ends."""

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
