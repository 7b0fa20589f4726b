"""Histograms as plain numbers, which cost less to count than those of Prometheus' client."""

import bisect
import itertools
from typing import Final

from prometheus_client import utils


class Histogram:
    """Number of values in each interval, and their sum."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds: Final = bounds
        self._counts: Final = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect.bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """Number of all values."""
        return sum(self._counts)

    def copy(self) -> "Histogram":
        """Return a histogram with the same values, which later values do not change."""
        copied = Histogram(self._bounds)
        copied._counts[:] = self._counts
        copied.sum = self.sum
        return copied

    def bounds(self) -> list[str]:
        """Return the upper bounds of the buckets as text."""
        return [*map(utils.floatToGoString, self._bounds), "+Inf"]

    def totals(self) -> list[float]:
        """Return, for each upper bound, the number of values that were not above it."""
        return list(map(float, itertools.accumulate(self._counts)))

    def buckets(self) -> list[tuple[str, float]]:
        """Return each upper bound with the number of values that were not above it."""
        return list(zip(self.bounds(), self.totals(), strict=True))
