"""Which part of a log somebody asks for: ``kubectl logs`` with its options, as the kubelet reads them.

The rules are upstream's: the last ``tail`` lines come first of all, then those since a time, then everything up to a
number of bytes, which may end in the middle of a line.
"""

from __future__ import annotations

import collections
import datetime as dt
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Final

import msgspec

from drachma.node.logs import entry as entries
from drachma.node.logs.entry import Entry
from drachma.node.logs.log import Log, Reading

ALL: Final = "All"


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """``tail`` None is the whole log; ``stream`` is ``All``, ``Stdout`` or ``Stderr``."""

    follow: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: dt.datetime | None = None
    limit_bytes: int | None = None
    stream: str = ALL


async def output(log: Log, selection: Selection) -> AsyncGenerator[bytes, None]:
    """What is to be shown, in pieces, until the log ends or, where it is not followed, now."""
    left = selection.limit_bytes
    goes_on: set[str] = set()
    reading = log.read()
    try:
        async for entry in _entries(reading, selection):
            piece = _shown(entry, selection, is_begin=entry.stream not in goes_on)
            (goes_on.add if entry.is_partial else goes_on.discard)(entry.stream)
            if left is not None:
                piece = piece[:left]
                left -= len(piece)
            if piece:
                yield piece
            if left == 0:
                return
    finally:
        reading.close()


async def _entries(reading: Reading, selection: Selection) -> AsyncIterator[Entry]:
    past = reading.past()
    for entry in past if selection.tail is None else _tail(past, selection.tail):
        yield entry
    if selection.follow:
        async for entry in reading.more():
            yield entry


def _shown(entry: Entry, selection: Selection, *, is_begin: bool) -> bytes:
    """An entry as it is shown; nothing where it is of another stream or time than what is asked for.

    A line that is in parts has one time, that of its beginning.
    """
    if selection.stream != ALL and entry.stream != selection.stream.lower():
        return b""
    if selection.since is not None and entry.moment < selection.since:
        return b""
    return (entries.stamp(entry.moment) + b" " if selection.timestamps and is_begin else b"") + entry.output


def _tail(past: Iterator[Entry], lines: int) -> Iterator[Entry]:
    """The last so many lines, each with all its parts."""
    kept: collections.deque[list[Entry]] = collections.deque(maxlen=lines)
    parts: list[Entry] = []
    for entry in past:
        parts.append(entry)
        if not entry.is_partial:
            kept.append(parts)
            parts = []
    if parts:
        kept.append(parts)
    for line in kept:
        yield from line
