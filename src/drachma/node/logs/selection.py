"""Selection of a part of a log: the options of ``kubectl logs``, as the kubelet reads them.

The rules are upstream's: the last ``tail`` lines are taken first, then the lines since a time, then a number of bytes,
which may end in the middle of a line.
"""

from __future__ import annotations

import collections
import datetime as dt
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Final

import msgspec

from drachma.node.logs.log import Entry, Log, Reading, timestamp

ALL: Final = "All"


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a log. Without ``tail`` it is the whole log; ``stream`` is ``All``, ``Stdout`` or ``Stderr``."""

    follow: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: dt.datetime | None = None
    limit_bytes: int | None = None
    stream: str = ALL


async def output(log: Log, selection: Selection) -> AsyncGenerator[bytes, None]:
    """Yield the selected part of a log in pieces, up to the end of the log, or up to now if it is not followed."""
    budget = selection.limit_bytes
    open_lines: set[str] = set()
    reading = log.read()
    try:
        async for entry in _entries(reading, selection):
            piece = _format(entry, selection, is_start=entry.stream not in open_lines)
            (open_lines.add if entry.is_partial else open_lines.discard)(entry.stream)
            if budget is not None:
                piece = piece[:budget]
                budget -= len(piece)
            if piece:
                yield piece
            if budget == 0:
                return
    finally:
        reading.close()


async def _entries(reading: Reading, selection: Selection) -> AsyncIterator[Entry]:
    entries = reading.past()
    for entry in entries if selection.tail is None else _tail(entries, selection.tail):
        yield entry
    if selection.follow:
        async for entry in reading.more():
            yield entry


def _format(entry: Entry, selection: Selection, *, is_start: bool) -> bytes:
    """Return an entry in the form of the output; empty for an entry of another stream or time.

    A line in parts has one timestamp, at its start.
    """
    if selection.stream != ALL and entry.stream != selection.stream.lower():
        return b""
    if selection.since is not None and entry.moment < selection.since:
        return b""
    return (timestamp(entry.moment) + b" " if selection.timestamps and is_start else b"") + entry.output


def _tail(entries: Iterator[Entry], lines: int) -> Iterator[Entry]:
    """Yield the last lines, each with all its parts."""
    last_lines: collections.deque[list[Entry]] = collections.deque(maxlen=lines)
    parts: list[Entry] = []
    for entry in entries:
        parts.append(entry)
        if not entry.is_partial:
            last_lines.append(parts)
            parts = []
    if parts:
        last_lines.append(parts)
    for line in last_lines:
        yield from line
