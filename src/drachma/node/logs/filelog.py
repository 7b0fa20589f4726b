"""Log of a container in files of the CRI's format, rotated before they grow too large.

The newest entries are in ``N.log``, the entries before in ``N.log.1``; older entries are gone. So the log of a
container has a bounded size.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import AsyncIterator, Iterator
from typing import IO, Final

from drachma.node.logs.log import Entry, Reading, Signal, encode, parse
from drachma.nodewire import regularfile

FILE_BYTES: Final = 10 * 1024 * 1024
"""Size at which a file is rotated; the kubelet's containerLogMaxSize."""

LINE_BYTES: Final = 16 * 1024
"""Longest line that is written in one part."""


class FileLog:
    """Log of one run of a container. One process writes it, on one event loop."""

    def __init__(self, path: pathlib.Path, *, file_bytes: int = FILE_BYTES) -> None:
        """Start a log, or continue an existing one.

        Raises:
            OSError: the file cannot be written.
        """
        self._path = path
        self._limit = file_bytes
        self._signal = Signal()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = _append(path)
        self._size = self._file.tell()
        self._generation = 0

    def add(self, entry: Entry) -> None:
        """Add an entry. It is lost if the disk is full."""
        line = encode(entry)
        if self._size and self._size + len(line) > self._limit:
            self._rotate()
        with contextlib.suppress(OSError):
            self._size += self._file.write(line)
        self._signal.ring()

    def end(self) -> None:
        """End the log. The files stay."""
        self._file.close()
        self._signal.end()

    def read(self) -> Reading:
        return _FileReading(self)

    @property
    def path(self) -> pathlib.Path:
        return self._path

    @property
    def generation(self) -> int:
        """Number of rotations."""
        return self._generation

    @property
    def signal(self) -> Signal:
        return self._signal

    def _rotate(self) -> None:
        self._file.close()
        self._path.replace(_older(self._path))
        self._file = _append(self._path)
        self._size = 0
        self._generation += 1


class _FileReading:
    """Reader of a file that may be rotated meanwhile. The open file is read to its end before the next one."""

    def __init__(self, log: FileLog) -> None:
        self._log = log
        self._older = _open_if_present(_older(log.path))
        self._file = regularfile.open_for_reading(log.path, follows_links=False)
        self._generation = log.generation

    def past(self) -> Iterator[Entry]:
        if self._older is not None:
            yield from _parse_all(self._older)
        yield from _parse_all(self._file)

    async def more(self) -> AsyncIterator[Entry]:
        while True:
            for each in _parse_all(self._file):
                yield each
            if self._generation != self._log.generation:
                self._file.close()
                self._file = regularfile.open_for_reading(self._log.path, follows_links=False)
                self._generation = self._log.generation
            elif self._log.signal.has_ended:
                return
            else:
                await self._log.signal.wait()

    def close(self) -> None:
        self._file.close()
        if self._older is not None:
            self._older.close()


def _older(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(path.name + ".1")


def _append(path: pathlib.Path) -> IO[bytes]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    file = open(os.open(path, flags, 0o644), "ab", buffering=0)  # noqa: PTH123, SIM115 - kept open, by a descriptor
    file.seek(0, os.SEEK_END)
    return file


def _open_if_present(path: pathlib.Path) -> IO[bytes] | None:
    try:
        return regularfile.open_for_reading(path, follows_links=False)
    except FileNotFoundError:
        return None


def _parse_all(file: IO[bytes]) -> Iterator[Entry]:
    for line in iter(file.readline, b""):
        if (each := parse(line)) is not None:
            yield each
