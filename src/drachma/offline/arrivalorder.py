"""Arrivals of a trace in the order of their times: small traces are sorted, large ones must be sorted already."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Final

from drachma.simulate import csvrows
from drachma.simulate.timeline.events import Arrival

SORTED_BYTES: Final = 64 * 1024 * 1024
"""Size of a file up to which its arrivals are sorted in memory."""


def sort_arrivals(
    path: pathlib.Path, arrivals: Iterator[tuple[csvrows.Row, Arrival]], *, field: str
) -> Iterator[Arrival]:
    """Return the arrivals of rows in the order of their times, which a field of the rows has.

    Raises InvalidValueError if a large file is not sorted.
    """
    if path.stat().st_size <= SORTED_BYTES:
        return iter(sorted((arrival for _, arrival in arrivals), key=lambda arrival: arrival.time))
    return _check(arrivals, field)


def _check(arrivals: Iterator[tuple[csvrows.Row, Arrival]], field: str) -> Iterator[Arrival]:
    latest = 0.0
    for row, arrival in arrivals:
        if arrival.time < latest:
            row.refuse(
                field,
                f"is before {latest:g}, the time of the line above; sort files above "
                f"{SORTED_BYTES // 1024 // 1024} MiB by time",
            )
        latest = arrival.time
        yield arrival
