"""Connections as they come in: accepted while there is room, given up where the other end takes its time.

Whoever can reach the port can open connections and say nothing, or half a request, for ever; each takes a file
descriptor, and without one nobody is answered. So a handshake and the head of a request have to be complete in time,
and no more connections are open than leave a reserve of descriptors for everything else. Where there is no more room,
the connection that has been waiting for its client for longest makes some; one that is being answered never does.
"""

import asyncio
import contextlib
import resource
import socket
import ssl
from collections.abc import Callable, Collection
from typing import Final, Protocol

import msgspec

RESERVED_DESCRIPTORS: Final = 64
"""File descriptors that connections leave to the store, its checkpoints, logs, and answers to those that are open."""

MOST_CONNECTIONS: Final = 10_000

_FEWEST_CONNECTIONS: Final = 8
_PAUSE_SECONDS: Final = 0.05
"""How long to wait where the system has no descriptor left, which no limit here has foreseen."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long clients may take, how much the head of a request may be, and how many connections are open at once."""

    handshake_seconds: float = 10.0
    head_seconds: float = 32.0
    head_bytes: int = 1 << 20
    count: int = MOST_CONNECTIONS


def limits_of_process() -> Limits:
    """The usual limits, with as many connections as the process has file descriptors for."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return Limits()
    room = max(descriptors - RESERVED_DESCRIPTORS, _FEWEST_CONNECTIONS)
    return Limits(count=min(room, MOST_CONNECTIONS))


class Connection(Protocol):
    """What there is to know of a connection that is open."""

    def waiting_since(self) -> float | None:
        """When it began to wait for its client, by the clock of the loop; None while a request is answered."""

    def give_up(self) -> None:
        """Ends it at once."""


class Listener:
    """Accepts connections of one socket. What it is to uvicorn is a server: it can be closed, and waited for."""

    def __init__(
        self,
        listening: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        *,
        context: ssl.SSLContext | None,
        limits: Limits,
        connections: Callable[[], Collection[Connection]],
    ) -> None:
        self._socket = listening
        self._make_protocol = make_protocol
        self._context = context
        self._limits = limits
        self._connections = connections
        self._handshakes: dict[asyncio.Task[None], float] = {}
        self._accepting = asyncio.create_task(self._accept(), name="accept connections")

    def close(self) -> None:
        """Accepts nothing more; connections that are open stay so."""
        self._accepting.cancel()
        for handshake in list(self._handshakes):
            handshake.cancel()

    async def wait_closed(self) -> None:
        """Returns once nothing is accepted any more."""
        await asyncio.gather(self._accepting, *self._handshakes, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                opened, _ = await loop.sock_accept(self._socket)
            except OSError:
                self._make_room()
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            if self._count() >= self._limits.count and not self._make_room():
                opened.close()
                continue
            with contextlib.suppress(OSError):
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            handshake = asyncio.create_task(self._shake_hands(opened))
            self._handshakes[handshake] = loop.time()
            handshake.add_done_callback(lambda done: self._handshakes.pop(done, None))

    async def _shake_hands(self, opened: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        seconds = self._limits.handshake_seconds if self._context is not None else None
        try:
            await loop.connect_accepted_socket(
                self._make_protocol, opened, ssl=self._context, ssl_handshake_timeout=seconds
            )
        except (OSError, asyncio.CancelledError):
            # Also a handshake that fails or takes too long. Nothing was promised yet.
            opened.close()

    def _count(self) -> int:
        return len(self._handshakes) + len(self._connections())

    def _make_room(self) -> bool:
        """Gives up what has been waiting for its client for longest; whether there was something."""
        handshake = min(self._handshakes, key=self._handshakes.__getitem__, default=None)
        waiting = [(since, each) for each in self._connections() if (since := each.waiting_since()) is not None]
        longest = min(waiting, key=lambda pair: pair[0], default=None)
        if handshake is not None and (longest is None or self._handshakes[handshake] <= longest[0]):
            handshake.cancel()
            self._handshakes.pop(handshake)
            return True
        if longest is not None:
            longest[1].give_up()
            return True
        return False
