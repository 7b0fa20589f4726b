"""Log of a container that the runtime itself writes, in a file of the CRI's format.

The runtime replaces a file that grows too large by an empty one. The entries of the old file are gone then.
"""

from __future__ import annotations

import asyncio
import os
import pathlib
from collections.abc import AsyncIterator, Iterator
from typing import IO, Final

from drachma.node.logs.log import Entry, Reading, parse
from drachma.nodewire import regularfile
from drachma.runtime.clock import Clock, sleep_unless

_POLL_SECONDS: Final = 0.1
"""Interval at which readers look for new entries."""


class RuntimeLog:
    """Log of one run of a container, which the agent only reads."""

    def __init__(self, path: pathlib.Path, *, clock: Clock) -> None:
        """The file may not exist yet, or not any more; the log is empty then."""
        self._path = path
        self._clock = clock
        self._ended = asyncio.Event()

    def end(self) -> None:
        """End the log."""
        self._ended.set()

    def read(self) -> Reading:
        return _RuntimeReading(self)

    @property
    def path(self) -> pathlib.Path:
        return self._path

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    async def wait(self) -> None:
        """Wait until it is time to look for new entries."""
        await sleep_unless(self._ended, _POLL_SECONDS, clock=self._clock)


class _RuntimeReading:
    """Reader of a file that may be replaced meanwhile. The open file is read to its end before the next one."""

    def __init__(self, log: RuntimeLog) -> None:
        self._log = log
        self._file = _open(log.path)

    def past(self) -> Iterator[Entry]:
        return _parse_lines(self._file)

    async def more(self) -> AsyncIterator[Entry]:
        while True:
            has_ended = self._log.has_ended
            for each in _parse_lines(self._file):
                yield each
            if _is_replaced(self._file, self._log.path):
                self.close()
                self._file = _open(self._log.path)
            elif has_ended:
                return
            else:
                await self._log.wait()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _open(path: pathlib.Path) -> IO[bytes] | None:
    try:
        return regularfile.open_for_reading(path, follows_links=False)
    except FileNotFoundError:
        return None


def _is_replaced(file: IO[bytes] | None, path: pathlib.Path) -> bool:
    try:
        current = path.lstat()
    except FileNotFoundError:
        return False
    return file is None or not os.path.samestat(current, os.fstat(file.fileno()))


def _parse_lines(file: IO[bytes] | None) -> Iterator[Entry]:
    """Yield the entries of whole lines. A line that is still being written is left for the next call."""
    if file is None:
        return
    while (line := file.readline()).endswith(b"\n"):
        if (each := parse(line)) is not None:
            yield each
    file.seek(-len(line), os.SEEK_CUR)
