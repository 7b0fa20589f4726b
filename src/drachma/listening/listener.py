"""The listener: accepts connections of one socket while the budget has room, and limits the TLS handshake."""

import asyncio
import contextlib
import functools
import socket
import ssl
from collections.abc import Callable
from typing import Final

from drachma.listening import budget as budgets
from drachma.listening import limits as limiting

BACKLOG: Final = 2048

_PAUSE_SECONDS: Final = 0.05
"""Pause after the system had no descriptor left, which no limit here has foreseen."""

_READ_BYTES: Final = 64 * 1024


class Listener:
    """Accepts connections. To uvicorn it is a server: it can be closed, and waited for."""

    def __init__(
        self,
        listening: socket.socket,
        make_protocol: Callable[[budgets.Slot], asyncio.Protocol],
        *,
        context: ssl.SSLContext | None,
        limits: limiting.Limits,
        budget: budgets.Budget,
    ) -> None:
        """``make_protocol`` makes the protocol of a connection, which releases the slot when the connection is lost."""
        listening.listen(BACKLOG)
        listening.settimeout(0)
        self._socket: Final = listening
        self._make_protocol: Final = make_protocol
        self._context: Final = context
        self._limits: Final = limits
        self._budget: Final = budget
        self._buffer: Final = memoryview(bytearray(_READ_BYTES))
        self._handshakes: Final[set[asyncio.Task[bool]]] = set()
        self._accepting: Final = asyncio.create_task(self._accept(), name="accept connections")

    def close(self) -> None:
        """Accept nothing more; connections that are open stay open."""
        self._accepting.cancel()
        for handshake in list(self._handshakes):
            handshake.cancel()

    async def wait_closed(self) -> None:
        """Return once nothing is accepted any more."""
        await asyncio.gather(self._accepting, *self._handshakes, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                opened, address = await loop.sock_accept(self._socket)
            except OSError:
                self._budget.make_room()
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            peer = str(address[0]) if isinstance(address, tuple) and address else ""
            slot = self._budget.admit(peer, descriptor=opened.fileno())
            if slot is None:
                opened.close()
                continue
            with contextlib.suppress(OSError):
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            handshake = asyncio.create_task(self._shake_hands(opened, slot))
            slot.give_up = handshake.cancel
            self._handshakes.add(handshake)
            handshake.add_done_callback(functools.partial(self._end_handshake, opened=opened, slot=slot))

    async def _shake_hands(self, opened: socket.socket, slot: budgets.Slot) -> bool:
        """Return True once the connection is served; False if the handshake fails or takes too long."""
        loop = asyncio.get_running_loop()
        seconds = self._limits.handshake_seconds if self._context is not None else None
        try:
            await loop.connect_accepted_socket(
                lambda: self._connect(slot), opened, ssl=self._context, ssl_handshake_timeout=seconds
            )
        except OSError:
            return False
        return True

    def _connect(self, slot: budgets.Slot) -> asyncio.BaseProtocol:
        protocol = self._make_protocol(slot)
        return protocol if self._context is None else _Buffered(protocol, self._buffer)

    def _end_handshake(self, handshake: asyncio.Task[bool], *, opened: socket.socket, slot: budgets.Slot) -> None:
        self._handshakes.discard(handshake)
        if handshake.cancelled() or not handshake.result():
            slot.release()
            opened.close()


class _Buffered(asyncio.BufferedProtocol):
    """A protocol that reads through one buffer for all connections.

    For other protocols uvloop allocates 256 KiB for each read from TLS, whatever its size. Bytes are copied before
    another connection reads.

    It lets go of its protocol when the connection is lost. uvloop's side of TLS keeps it, and the protocol keeps that:
    otherwise each connection that has ended would leave its buffers to the garbage collector: 18 KiB after a short
    request, and up to a third of a megabyte.
    """

    def __init__(self, protocol: asyncio.Protocol, buffer: memoryview) -> None:
        self._protocol: asyncio.Protocol | None = protocol
        self._receive: Callable[[bytes], None] = protocol.data_received
        self._buffer: Final = buffer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._protocol is not None:
            self._protocol.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        protocol, self._protocol, self._receive = self._protocol, None, _ignore
        if protocol is not None:
            protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        if self._protocol is not None:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        if self._protocol is not None:
            self._protocol.resume_writing()

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received() if self._protocol is not None else None

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._receive(bytes(self._buffer[:nbytes]))


def _ignore(_data: bytes) -> None:
    """Take bytes of a connection that is lost."""
