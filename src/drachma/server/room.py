"""Room: bytes of memory that large calls may use at the same time.

A large call holds its object several times while it is decided: decoded, changed, encoded. Calls on one object also
decide in vain when another of them commits first. So a large call enters the room before it is decided and leaves when
it is answered. Calls that do not fit wait in their order and hold nothing but their bodies, and so do calls about an
object that another call in the room is about.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Hashable
from typing import Final, NamedTuple

LIMIT: Final = 256 * 2**20
"""Bytes that all large calls of an application may use together."""

FACTOR: Final = 12
"""Bytes in memory for a byte of JSON, in all forms that a call holds it in."""


class _Turn(NamedTuple):
    """Call that waits to enter."""

    share: int
    key: Hashable
    admitted: asyncio.Future[None]


class Room:
    """Limit in bytes, given out in the order of arrival. For one event loop."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit: Final = limit
        self._waiting: Final[list[_Turn]] = []
        self._keys: Final[set[Hashable]] = set()
        self._used = 0

    @property
    def used(self) -> int:
        """Bytes that calls use now."""
        return self._used

    @contextlib.asynccontextmanager
    async def enter(self, size: int, key: Hashable) -> AsyncIterator[None]:
        """Hold room for a call about ``size`` bytes of JSON, alone of all calls about ``key``.

        A call that is larger than the room has the room alone.
        """
        turn = _Turn(min(size * FACTOR, self._limit), key, asyncio.get_running_loop().create_future())
        self._waiting.append(turn)
        self._admit()
        try:
            await turn.admitted
            yield
        finally:
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                self._used -= turn.share
                self._keys.discard(turn.key)
            self._admit()

    def _admit(self) -> None:
        """Let calls in: the first ones that fit, but none ahead of a call that waits for bytes."""
        for turn in tuple(self._waiting):
            if turn.key in self._keys:
                continue
            if self._used + turn.share > self._limit:
                return
            self._waiting.remove(turn)
            self._used += turn.share
            self._keys.add(turn.key)
            if not turn.admitted.done():
                turn.admitted.set_result(None)
