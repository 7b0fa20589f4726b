"""Frames of events that several watches are sent: made once, and shared within a bound in bytes."""

import collections
from collections.abc import Hashable
from typing import Final

_BYTES: Final = 32 << 20


class Frames:
    """Bytes by key; the oldest are dropped first."""

    def __init__(self, limit: int = _BYTES) -> None:
        self._limit: Final = limit
        self._frames: Final[collections.OrderedDict[Hashable, bytes]] = collections.OrderedDict()
        self.total = 0
        """Bytes kept."""

    def get(self, key: Hashable) -> bytes | None:
        """Return the bytes of a key, or None."""
        return self._frames.get(key)

    def put(self, key: Hashable, data: bytes) -> None:
        """Keep bytes, at the cost of the oldest ones."""
        if len(data) > self._limit:
            return
        self._frames[key] = data
        self.total += len(data)
        while self.total > self._limit:
            _, oldest = self._frames.popitem(last=False)
            self.total -= len(oldest)
