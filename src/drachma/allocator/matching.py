"""Matching: whether several demands can be served at once from overlapping supplies, each unit of supply used once.

A demand is a set of units, as an integer, and how many of them it needs. Called by the outlook of a search, for
devices and for attribute values; it answers exactly, in polynomial time.
"""

from __future__ import annotations

from collections.abc import Iterable

Demand = tuple[int, int]
"""Which units would do, and how many of them are needed."""


def can_serve(demands: Iterable[Demand]) -> bool:
    """Return True if all demands can be served at once."""
    merged: dict[int, int] = {}
    for units, needed in demands:
        if needed > 0:
            merged[units] = merged.get(units, 0) + needed
    union = total = 0
    for units, needed in merged.items():
        if units.bit_count() < needed:
            return False
        union |= units
        total += needed
    if union.bit_count() < total:
        return False
    ordered = sorted(merged.items(), key=_size)
    before = 0
    for units, needed in ordered:
        before += needed
        if units.bit_count() < before:
            # Not even so small a supply is beyond the reach of the demands before it: look closer.
            return _assign(ordered)
    return True


def _size(demand: Demand) -> int:
    return demand[0].bit_count()


def _assign(demands: list[Demand]) -> bool:
    """Serve one unit after the other; where all are given away, let earlier demands move to other units."""
    assigned = [0] * len(demands)
    used = 0
    for number, (_, needed) in enumerate(demands):
        for _ in range(needed):
            unit = _augment(demands, assigned, start=number, used=used)
            if not unit:
                return False
            used |= unit
    return True


def _augment(demands: list[Demand], assigned: list[int], *, start: int, used: int) -> int:
    """Give the demand one more unit, directly or by a chain of exchanges; the unit newly used, or 0."""
    came_from: dict[int, int] = {start: -1}
    queue = [start]
    for number in queue:
        units = demands[number][0]
        free = units & ~used
        if free:
            unit = free & -free
            gained = unit
            while number != -1:
                # Each demand on the chain takes the unit and passes on one that the demand before it can use.
                before = came_from[number]
                passed = 0 if before == -1 else assigned[number] & demands[before][0]
                passed &= -passed
                assigned[number] = assigned[number] & ~passed | gained
                gained, number = passed, before
            return unit
        for neighbour, units_assigned in enumerate(assigned):
            if units_assigned & units and neighbour not in came_from:
                came_from[neighbour] = number
                queue.append(neighbour)
    return 0
