"""The log of a container that its runtime writes by itself, in a file of the CRI's form, whoever looks after it.

A file that grows too large is exchanged for an empty one by whoever writes it; what the one before had is gone then.
"""

from __future__ import annotations

import asyncio
import os
import pathlib
from collections.abc import AsyncIterator, Iterator
from typing import IO, Final

from drachma.node.logs import entry as entries
from drachma.node.logs.entry import Entry
from drachma.node.logs.log import Reading
from drachma.nodewire import regularfile
from drachma.runtime import clock

_LOOK_SECONDS: Final = 0.1
"""How soon those who wait for more see it."""


class RuntimeLog:
    """The log of one run of a container, to be read only."""

    def __init__(self, path: pathlib.Path, *, time: clock.Clock) -> None:
        """The file may not be there yet, or not any more: nothing was written then."""
        self._path = path
        self._clock = time
        self._ended = asyncio.Event()

    def end(self) -> None:
        """All is written."""
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
        """Returns when it is time to look for more."""
        await clock.sleep_unless(self._ended, _LOOK_SECONDS, time=self._clock)


class _RuntimeReading:
    """Reads on in a file that is exchanged meanwhile: the one that was opened is read to its end first."""

    def __init__(self, log: RuntimeLog) -> None:
        self._log = log
        self._file = _open(log.path)

    def past(self) -> Iterator[Entry]:
        return _parsed(self._file)

    async def more(self) -> AsyncIterator[Entry]:
        while True:
            has_ended = self._log.has_ended
            for each in _parsed(self._file):
                yield each
            if _is_exchanged(self._file, self._log.path):
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


def _is_exchanged(file: IO[bytes] | None, path: pathlib.Path) -> bool:
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    return file is None or not os.path.samestat(there, os.fstat(file.fileno()))


def _parsed(file: IO[bytes] | None) -> Iterator[Entry]:
    """Whole lines; one that is still being written is left for the next time."""
    if file is None:
        return
    while (line := file.readline()).endswith(b"\n"):
        if (each := entries.parse(line)) is not None:
            yield each
    file.seek(-len(line), os.SEEK_CUR)
