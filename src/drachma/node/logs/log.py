"""The log of one run of a container: entries are added to it, and anybody may read it and wait for more.

``Log`` is the contract; :class:`MemoryLog` keeps the last entries of containers that are only imagined,
:class:`drachma.node.logs.filelog.FileLog` keeps those of others in files.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import AsyncIterator, Iterator
from typing import Final, Protocol

from drachma.node.logs.entry import Entry

_MEMORY_ENTRIES: Final = 1000


class Reading(Protocol):
    """A log as somebody reads it who begins now."""

    def past(self) -> Iterator[Entry]:
        """What there was of it then, the oldest first."""

    def more(self) -> AsyncIterator[Entry]:
        """What has come since, and what comes until the container has ended; read after the past."""

    def close(self) -> None:
        """Lets go of files."""


class Log(Protocol):
    """The log of one run of a container."""

    def read(self) -> Reading:
        """Begins to read it."""


class Signal:
    """Wakes those who wait for more of a log; ended with it."""

    def __init__(self) -> None:
        self.has_ended = False
        self._more = asyncio.Event()

    def ring(self) -> None:
        self._more.set()
        self._more = asyncio.Event()

    def end(self) -> None:
        self.has_ended = True
        self.ring()

    async def wait(self) -> None:
        await self._more.wait()


class MemoryLog:
    """The last entries, in memory."""

    def __init__(self) -> None:
        self._kept: Final[collections.deque[tuple[int, Entry]]] = collections.deque(maxlen=_MEMORY_ENTRIES)
        self._count = 0
        self._signal = Signal()

    def add(self, entry: Entry) -> None:
        self._kept.append((self._count, entry))
        self._count += 1
        self._signal.ring()

    def end(self) -> None:
        """Nothing is added any more."""
        self._signal.end()

    def read(self) -> Reading:
        return _MemoryReading(self)

    def since(self, number: int) -> list[Entry]:
        """Entries from the one of a number on, as far as they are kept."""
        return [entry for each, entry in self._kept if each >= number]

    @property
    def count(self) -> int:
        """How many were ever added."""
        return self._count

    @property
    def signal(self) -> Signal:
        return self._signal


class _MemoryReading:
    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._past = log.since(0)
        self._upto = log.count

    def past(self) -> Iterator[Entry]:
        return iter(self._past)

    async def more(self) -> AsyncIterator[Entry]:
        while True:
            fresh, self._upto = self._log.since(self._upto), self._log.count
            for entry in fresh:
                yield entry
            if self._upto < self._log.count:
                continue
            if self._log.signal.has_ended:
                return
            await self._log.signal.wait()

    def close(self) -> None:
        pass
