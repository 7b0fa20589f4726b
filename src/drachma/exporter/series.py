"""Metrics as plain values: a name, its labels, and the samples. The number of samples of a metric is bounded."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from drachma.api import meta

OTHER: Final = "other"
"""Label value of everything beyond a limit."""


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One gauge with its samples by label values."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    samples: Mapping[tuple[str, ...], float]


def tally(entries: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], float]:
    """Return how often each combination of label values occurs."""
    return dict(Counter(entries))


def oldest_age(objects: Iterable[meta.Object], *, now: dt.datetime) -> float:
    """Return the age of the oldest object in seconds; 0 without objects."""
    created = [each.metadata.creation_timestamp for each in objects]
    return max([(now - moment).total_seconds() for moment in created if moment is not None], default=0.0)


def most_frequent(values: Iterable[str], limit: int) -> frozenset[str]:
    """Return the values that keep their names; the others become ``other``. All of them if they are few enough."""
    counts = Counter(values)
    if len(counts) <= limit:
        return frozenset(counts)
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return frozenset(value for value, _ in ordered[:limit])


def bounded(value: str, known: frozenset[str]) -> str:
    """Return a label value, or ``other`` if it is beyond the limit."""
    return value if value in known else OTHER
