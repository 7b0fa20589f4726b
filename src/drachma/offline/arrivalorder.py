"""Arrivals of a trace in the order of their times: small traces are sorted, large ones must be sorted already."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Final

from drachma import errors
from drachma.simulate.timeline.events import Arrival

SORTED_BYTES: Final = 64 * 1024 * 1024
"""Size of a file up to which its arrivals are sorted in memory."""


def sort_arrivals(path: pathlib.Path, arrivals: Iterator[Arrival]) -> Iterator[Arrival]:
    """Return the arrivals in the order of their times. Raises InvalidValueError if a large file is not sorted."""
    if path.stat().st_size <= SORTED_BYTES:
        return iter(sorted(arrivals, key=lambda arrival: arrival.time))
    return _check(path, arrivals)


def _check(path: pathlib.Path, arrivals: Iterator[Arrival]) -> Iterator[Arrival]:
    latest = 0.0
    for arrival in arrivals:
        if arrival.time < latest:
            raise errors.InvalidValueError(
                f"{path}: {arrival.name} arrives at {arrival.time:g}, before the line above it at {latest:g}; "
                f"sort files above {SORTED_BYTES // 1024 // 1024} MiB by time"
            )
        latest = arrival.time
        yield arrival
