"""Straight ahead: the first solution where nothing has to be tried twice.

Most claims ask for a few devices and there are enough. Then the first device that will do is the right one each time,
and a loop finds them; only where it comes to a dead end has something to be searched for. Called by
:mod:`drachma.allocator.search` before it does that.
"""

from __future__ import annotations

from typing import NamedTuple

from drachma.allocator import budget
from drachma.allocator import problem as problems


class Pick(NamedTuple):
    """A device chosen for an option."""

    option: problems.Option
    position: int


class Solution(NamedTuple):
    """Which option was taken on every level, and all devices in the order chosen."""

    options: tuple[problems.Option, ...]
    picks: tuple[Pick, ...]


def applies(problem: problems.Problem) -> bool:
    """Return True if a loop can solve the problem: only devices are chosen, and only their use matters."""
    if problem.draws or problem.node_left or problem.has_admin_access:
        return False
    for level in problem.levels:
        option = level.options[0]
        if level.is_choice or option.listed is not None or option.candidates & problem.shared:
            return False
    return True


def go(problem: problems.Problem, budget: budget.Budget) -> Solution | None:
    """Return the first solution, or None if only a search can tell.

    Raises AllocationError for an error that upstream meets first.
    """
    in_use = problem.taken
    claim = -1
    constraint_state: tuple[int, ...] = ()
    picks: list[Pick] = []
    options: list[problems.Option] = []
    for level in problem.levels:
        option = level.options[0]
        if level.claim != claim:
            claim = level.claim
            constraint_state = problem.starts[claim]
        todo = (option.candidates | option.errors) & ~in_use
        more = option.count
        while more:
            low = todo & -todo
            if not low:
                return None
            budget.step()
            todo ^= low
            position = low.bit_length() - 1
            if option.errors & low:
                raise problem.failure(option, position)
            if option.checks:
                extended = problem.extend(option, position, constraint_state)
                if extended is None:
                    continue
                constraint_state = extended
            in_use |= low
            more -= 1
            picks.append(Pick(option, position))
        options.append(option)
    return Solution(tuple(options), tuple(picks))
