"""Log of one run of a container: entries, the contract of logs, and logs in memory.

:class:`MemoryLog` keeps the last entries of simulated containers; :class:`drachma.node.logs.filelog.FileLog` keeps the
entries of others in files. Files have the format of the CRI: ``2026-11-16T10:00:00.123456789Z stdout F hello``, where
``P`` instead of ``F`` marks a line that continues in the next entry.
"""

from __future__ import annotations

import asyncio
import collections
import datetime as dt
from collections.abc import AsyncIterator, Iterator
from typing import Final, NamedTuple, Protocol

STDOUT: Final = "stdout"
STDERR: Final = "stderr"

_FULL: Final = b"F"
_PARTIAL: Final = b"P"

_MEMORY_ENTRIES: Final = 1000


class Entry(NamedTuple):
    """A line, or a part of a long line. ``data`` does not include the line feed at the end of a whole line."""

    moment: dt.datetime
    stream: str
    data: bytes
    is_partial: bool = False

    @property
    def output(self) -> bytes:
        """The data as the container wrote it."""
        return self.data if self.is_partial else self.data + b"\n"


def timestamp(moment: dt.datetime) -> bytes:
    """Return a time with nanoseconds, as in log files and ``kubectl logs --timestamps``."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()


def encode(entry: Entry) -> bytes:
    """Return an entry as a line of a log file."""
    tag = _PARTIAL if entry.is_partial else _FULL
    return b" ".join((timestamp(entry.moment), entry.stream.encode(), tag, entry.data)) + b"\n"


def parse(line: bytes) -> Entry | None:
    """Return the entry in a line of a log file, or None if the line is truncated or malformed."""
    parts = line.removesuffix(b"\n").split(b" ", 3)
    if len(parts) < 4:
        return None
    try:
        moment = dt.datetime.fromisoformat(parts[0].decode())
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    # There may be several tags, separated by colons. The first one marks partial lines.
    return Entry(moment, parts[1].decode(errors="replace"), parts[3], parts[2].partition(b":")[0] == _PARTIAL)


class Reading(Protocol):
    """A reader of a log that starts now."""

    def past(self) -> Iterator[Entry]:
        """Yield the entries up to the start of the reader, the oldest first."""

    def more(self) -> AsyncIterator[Entry]:
        """Yield the later entries, until the container has ended. Call it after past()."""

    def close(self) -> None:
        """Close the files."""


class Log(Protocol):
    """Log of one run of a container."""

    def read(self) -> Reading:
        """Start to read the log."""


class Signal:
    """Wakes the readers of a log."""

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
    """Log that keeps its last entries in memory."""

    def __init__(self) -> None:
        self._entries: Final[collections.deque[tuple[int, Entry]]] = collections.deque(maxlen=_MEMORY_ENTRIES)
        self._count = 0
        self._signal = Signal()

    def add(self, entry: Entry) -> None:
        self._entries.append((self._count, entry))
        self._count += 1
        self._signal.ring()

    def end(self) -> None:
        """End the log."""
        self._signal.end()

    def read(self) -> Reading:
        return _MemoryReading(self)

    def since(self, number: int) -> list[Entry]:
        """Return the entries from a number on, as far as they are kept."""
        return [entry for each, entry in self._entries if each >= number]

    @property
    def count(self) -> int:
        """Number of entries ever added."""
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
