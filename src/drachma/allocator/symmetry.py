"""Symmetry: devices that no part of a problem can tell apart.

Twins are candidates of the same options, have the same values in all constraints, and draw the same from counters and
capacities. If one of them leads nowhere, so do the others: whatever a search finds with one, it finds with its twin in
the same place. Called by careful searches, once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from drachma.allocator import budget, counters
from drachma.allocator import problem as problems
from drachma.allocator import view as views


def twins(
    problem: problems.Problem,
    candidates: Mapping[problems.Option, int],
    *,
    draws: Mapping[int, counters.Draws],
    budget: budget.Budget,
) -> dict[int, int]:
    """Return, for each device with twins, the set of them including the device.

    ``candidates`` and ``draws`` are the still relevant part of the problem's own. There are no twins if the order of
    choices matters, or if devices can be chosen although they are taken.
    """
    options = [option for level in problem.levels for option in level.options]
    if problem.has_admin_access or any(_depends_on_order(option) for option in options):
        return {}
    sets = {candidates[option] for option in options} | {option.errors for option in options}
    sets |= {_mask(option.listed) for option in options if option.listed is not None}
    relevant = 0
    for members in sets:
        relevant |= members
    # Which of the devices that "All" wants breaks a constraint first decides about an error: there order counts.
    ordered = _mask(position for option in options if option.checks for position in option.listed or ())
    groups = [relevant & ~problem.taken & ~ordered]
    for members in sets:
        groups = [part for group in groups for part in (group & members, group & ~members) if part]
    if (
        draws
        or problem.bonds
        or problem.node_left
        or relevant & problem.shared
        or any(option.checks for option in options)
    ):
        groups = [part for group in groups for part in _split(problem, group, candidates, draws=draws, budget=budget)]
    return {position: group for group in groups if group & (group - 1) for position in views.positions(group)}


def _depends_on_order(option: problems.Option) -> bool:
    return any(check.distinct and check.untyped & option.candidates for check in option.checks)


def _split(
    problem: problems.Problem,
    group: int,
    candidates: Mapping[problems.Option, int],
    *,
    draws: Mapping[int, counters.Draws],
    budget: budget.Budget,
) -> list[int]:
    """Split devices that are candidates of the same options by what the options would make of them."""
    lowest = group & -group
    options = [option for level in problem.levels for option in level.options if candidates[option] & lowest]
    checks = {id(check.bits): check for option in options for check in option.checks}.values()
    shapes = {option.shape: option for option in options}.values()
    parts: dict[Hashable, int] = {}
    for position in views.positions(group):
        budget.check()
        bit = 1 << position
        key: Hashable = (
            draws.get(position),
            problem.bonds.get(position),
            tuple((check.bits[position], check.failing & bit) for check in checks),
            tuple(problem.room(option, position) for option in shapes) if problem.shared & bit else None,
            tuple(problem.node_needs(option, position) for option in options) if problem.node_left else None,
        )
        parts[key] = parts.get(key, 0) | bit
    return list(parts.values())


def _mask(listed: Iterable[int]) -> int:
    mask = 0
    for position in listed:
        mask |= 1 << position
    return mask
