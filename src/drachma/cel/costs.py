"""Ranges of sizes and costs, in arithmetic that stops at the largest 64-bit number instead of going past it.

A range is a pair (least, most). Sizes count characters, bytes, elements or entries; costs count CEL's cost units. The
two are computed with in the same way, so one type serves both; ``UNKNOWN`` is everything from nothing to the largest.
"""

from __future__ import annotations

import math
from typing import NamedTuple

MAX = 2**64 - 1
_TWO_TO_64 = 2.0**64

# Cost units of what expressions do, as upstream weighs them.
STRING_FACTOR = 0.1
REGEX_FACTOR = 0.25
LIST_COST = 10
MAP_COST = 30
MESSAGE_COST = 40


# Estimates make hundreds of ranges; the generated constructor is half their time.
_range = tuple.__new__


class Range(NamedTuple):
    """From ``min`` to ``max``, both included."""

    min: int
    max: int

    def plus(self, other: tuple[int, int]) -> Range:
        """Both together."""
        if other is ZERO:
            return self
        low, high = self[0] + other[0], self[1] + other[1]
        return _range(Range, (low if low < MAX else MAX, high if high < MAX else MAX))

    def times(self, other: tuple[int, int]) -> Range:
        """Return one for each of the other."""
        return Range(min(self[0] * other[0], MAX), min(self[1] * other[1], MAX))

    def scaled(self, factor: float) -> Range:
        """So much for each, rounded up."""
        return Range(_scaled(self[0], factor), _scaled(self[1], factor))

    def union(self, other: tuple[int, int]) -> Range:
        """Return the smallest range that holds both."""
        return Range(min(self[0], other[0]), max(self[1], other[1]))


def _scaled(value: int, factor: float) -> int:
    product = float(value) * factor
    if product >= _TWO_TO_64:
        return MAX
    return min(math.ceil(product), MAX)


def fixed(value: int) -> Range:
    """Exactly so much."""
    return Range(value, value)


ZERO = Range(0, 0)
ONE = Range(1, 1)
UNKNOWN = Range(0, MAX)
# What a union of ranges starts from.
NOTHING = Range(MAX, 0)
