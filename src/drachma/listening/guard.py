"""The guard of a connection: ends it when its client takes too long to ask or to read the answer.

Protocols own one and report the state of the connection to it. It keeps the connection's slot of the budget up to
date, so that a connection whose client keeps the server waiting makes room for others.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from drachma.listening import budget as budgets
from drachma.listening import limits as limiting

_WRITE_BUFFER: Final = 16 * 1024
"""Bytes that a transport buffers before a protocol is told to stop writing."""


class Guard:
    """Timers and slot of one connection. ``on_give_up`` is called before the guard ends it."""

    __slots__ = (
        "_head_timer",
        "_is_working",
        "_limits",
        "_loop",
        "_slot",
        "_transport",
        "_unread_seconds",
        "_unread_timer",
        "on_give_up",
    )

    def __init__(
        self, transport: Any, *, slot: budgets.Slot, limits: limiting.Limits, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._transport: Final = transport
        self._slot: Final = slot
        self._limits: Final = limits
        self._loop: Final = loop
        self._is_working = False
        self._unread_seconds = limits.unread_seconds
        self._head_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        self.on_give_up: Callable[[], None] | None = None
        transport.set_write_buffer_limits(high=_WRITE_BUFFER)
        slot.give_up = self.give_up

    @property
    def awaits_head(self) -> bool:
        """True while the time for the head of a request runs."""
        return self._head_timer is not None

    def await_head(self) -> None:
        """Start the time for the head of the next request."""
        self.wait()
        self._stop_head_timer()
        self._head_timer = self._loop.call_later(self._limits.head_seconds, self.give_up)

    def wait(self) -> None:
        """Record that the connection waits for its client."""
        self._is_working = False
        self._slot.wait()

    def work(self) -> None:
        """Record that the head of a request is complete, and its answer is under way."""
        self._is_working = True
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        if self._unread_timer is None:
            self._slot.work()

    def allow_pauses(self) -> None:
        """Let the client leave a stream unread for longer than an answer."""
        self._unread_seconds = self._limits.stream_unread_seconds

    def pause_writing(self) -> None:
        """Start the time for the client to read."""
        self._slot.wait()
        if self._unread_timer is None:
            self._unread_timer = self._loop.call_later(self._unread_seconds, self.give_up)

    def resume_writing(self) -> None:
        """Record that the client has read enough to go on."""
        self._stop_unread_timer()
        if self._is_working:
            self._slot.work()

    def give_up(self) -> None:
        """End the connection without another word."""
        self._stop_head_timer()
        self._stop_unread_timer()
        if self.on_give_up is not None:
            self.on_give_up()
        self._transport.abort()

    def lose(self) -> None:
        """Record that the connection has ended."""
        self._stop_head_timer()
        self._stop_unread_timer()
        self.on_give_up = None
        self._slot.release()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
