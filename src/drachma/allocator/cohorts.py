"""Cohorts: claims that are alike and whose devices must agree on an attribute, such as replicas of GPU and NIC.

Called by the outlook of a careful search. Each such claim takes its devices from among those that have one element of
the attribute in common. How many claims an element can serve follows from numbers alone, and the sum over all
elements bounds how many claims can be served. Claims one by one would not show it.
"""

from __future__ import annotations

import bisect

from drachma.allocator import problem as problems

_Supply = tuple[tuple[int, int], ...]
"""The devices with one element, for each kind of device that a claim needs, and how many of them it needs."""


class _Cohort:
    __slots__ = ("options", "starts", "supplies")

    def __init__(self, options: list[problems.Option]) -> None:
        self.options = options
        """The options of the first claim."""
        self.starts: list[int] = []
        """The first level of each claim."""
        self.supplies: list[_Supply] = []


class Cohorts:
    """All cohorts of a problem that have more than one member."""

    def __init__(self, problem: problems.Problem, candidates: dict[problems.Option, int]) -> None:
        """``candidates`` is what is worth trying for each option."""
        cohorts: dict[tuple[object, ...], _Cohort] = {}
        for number, claim in enumerate(problem.claims):
            if len(claim.constraints) != 1 or claim.constraints[0].distinct:
                continue
            levels = [level for level in problem.levels if level.claim == number]
            if len(levels) > 1 and all(_is_simple(problem, level, candidates) for level in levels):
                options = [level.options[0] for level in levels]
                key = tuple((candidates[option], option.count, id(option.checks[0].bits)) for option in options)
                cohort = cohorts.get(key)
                if cohort is None:
                    cohort = cohorts[key] = _Cohort(options)
                cohort.starts.append(options[0].level)
        self._cohorts = [cohort for cohort in cohorts.values() if len(cohort.starts) > 1]
        for cohort in self._cohorts:
            # Devices may have thousands of elements, so a claim of its own does without.
            cohort.supplies = _supplies(cohort.options, candidates)

    def can_agree(self, depth: int, in_use: int) -> bool:
        """Return True if there are enough devices for all claims that start on this level or later."""
        for cohort in self._cohorts:
            unserved = len(cohort.starts) - bisect.bisect_left(cohort.starts, depth)
            for supply in cohort.supplies:
                if unserved <= 0:
                    break
                unserved -= min([(units & ~in_use).bit_count() // needed for units, needed in supply])
            if unserved > 0:
                return False
        return True


def _is_simple(problem: problems.Problem, level: problems.Level, candidates: dict[problems.Option, int]) -> bool:
    """Return True if a level takes a fixed number of devices that are all under the constraint."""
    option = level.options[0]
    if level.is_choice or option.listed is not None or option.way.admin_access or not option.count:
        return False
    return bool(option.checks) and not candidates[option] & problem.shared


def _supplies(options: list[problems.Option], candidates: dict[problems.Option, int]) -> list[_Supply]:
    elements = 0
    for option in options:
        elements |= option.checks[0].elements(candidates[option])
    supplies: list[_Supply] = []
    while elements:
        element = elements & -elements
        elements ^= element
        needs: dict[int, int] = {}
        for option in options:
            units = candidates[option] & option.checks[0].holding(element)
            needs[units] = needs.get(units, 0) + option.count
        supplies.append(tuple(needs.items()))
    return supplies
