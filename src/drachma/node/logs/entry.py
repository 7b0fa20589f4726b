"""One line of a container's output, and the form in which container runtimes write it into files.

The form is that of the CRI: ``2026-11-16T10:00:00.123456789Z stdout F hello``; ``P`` marks a line that goes on in the
next entry.
"""

from __future__ import annotations

import datetime as dt
from typing import Final, NamedTuple

STDOUT: Final = "stdout"
STDERR: Final = "stderr"

_FULL: Final = b"F"
_PARTIAL: Final = b"P"


class Entry(NamedTuple):
    """A line, or a part of one that is long; ``data`` is without the line feed that ends a whole line."""

    moment: dt.datetime
    stream: str
    data: bytes
    is_partial: bool = False

    @property
    def output(self) -> bytes:
        """What the container wrote."""
        return self.data if self.is_partial else self.data + b"\n"


def stamp(moment: dt.datetime) -> bytes:
    """A time with nanoseconds, as log files and ``kubectl logs --timestamps`` have it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()


def write(entry: Entry) -> bytes:
    """A line of a log file."""
    tag = _PARTIAL if entry.is_partial else _FULL
    return b" ".join((stamp(entry.moment), entry.stream.encode(), tag, entry.data)) + b"\n"


def parse(line: bytes) -> Entry | None:
    """What a line of a log file says; None for one that is cut off or not of this form."""
    parts = line.removesuffix(b"\n").split(b" ", 3)
    if len(parts) < 4:
        return None
    try:
        moment = dt.datetime.fromisoformat(parts[0].decode())
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    # Tags may follow each other after colons; the first one says whether the line is whole.
    return Entry(moment, parts[1].decode(errors="replace"), parts[3], parts[2].partition(b":")[0] == _PARTIAL)
