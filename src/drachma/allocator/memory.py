"""Memory: the state of a search, and the states that led nowhere.

Two states are equal for the rest of a search if they agree on everything that later levels use: their candidate
devices, the constraints that still apply to them, counters, groups and shares.
A careful search asks before it goes deeper.
"""

from __future__ import annotations

import marshal
from typing import Final, NamedTuple

from drachma.allocator import problem as problems

_REMEMBERED: Final = 50_000


class State(NamedTuple):
    """Choices so far, reduced to the parts that later choices depend on."""

    taken: int
    """Devices in use, by others or by what was chosen."""
    chosen: tuple[int, ...]
    """Constraint state of the current claim."""
    left: tuple[int, ...]
    """Remaining amounts of counters."""
    groups: tuple[int, ...]
    """The compatibility groups still open on counter sets."""
    shares: dict[int, tuple[int, ...]]
    """Amounts taken of the capacities of shared devices, by position."""
    marks: tuple[int, ...]
    """Devices chosen for each claim; kept only if there are requests for admin access."""
    node_left: tuple[int, ...] = ()
    """Remaining amounts of the node's own resources, if devices may use only so much of them."""


class Memory:
    """Keys of states from which there was no way on."""

    def __init__(self, problem: problems.Problem) -> None:
        self._failures: set[bytes] = set()
        self._relevant = _relevant_devices(problem)
        self._live = _live_constraints(problem)
        self._counts_results = [
            any(level.is_choice for level in problem.levels if level.claim == claim)
            for claim in range(len(problem.claims))
        ]

    def key(self, option: problems.Option, number: int, *, todo: int, state: State, device_count: int) -> bytes:
        """Return a key of all that the search depends on before device ``number`` of an option."""
        # After its first device an option chooses from what is left to do; "All" does not choose.
        is_choosing = number > 0 and option.listed is None
        parts = (
            option.level,
            option.number,
            number,
            todo if is_choosing else 0,
            state.taken & self._relevant[option.level + (1 if is_choosing else 0)],
            device_count if self._counts_results[option.claim] else 0,
            tuple([state.chosen[constraint] for constraint in self._live[option.level]]),
            state.left,
            state.groups,
            tuple(sorted(state.shares.items())),
            state.marks,
            state.node_left,
        )
        # One flat object for each: nested tuples by the thousand would keep the garbage collector busy. Version 2 of
        # the format knows no references, so equal parts have equal bytes.
        return marshal.dumps(parts, 2)

    def add(self, key: bytes) -> None:
        """Remember that there was no way on."""
        if len(self._failures) >= _REMEMBERED:
            self._failures.clear()
        self._failures.add(key)

    def __contains__(self, key: bytes) -> bool:
        return key in self._failures


def _relevant_devices(problem: problems.Problem) -> list[int]:
    """Return, for each level and for the end, the devices that this or any later level could use."""
    by_level = [0]
    relevant = 0
    for level in reversed(problem.levels):
        for option in level.options:
            relevant |= option.candidates | option.errors
            for position in option.listed or ():
                relevant |= 1 << position
        by_level.append(relevant)
    return by_level[::-1]


def _live_constraints(problem: problems.Problem) -> list[tuple[int, ...]]:
    """Return, for each level, the constraints that cover it or a later level of its claim."""
    by_level: list[tuple[int, ...]] = []
    live: set[int] = set()
    claim = -1
    for level in reversed(problem.levels):
        if level.claim != claim:
            live = set()
            claim = level.claim
        live |= {check.number for option in level.options for check in option.checks}
        by_level.append(tuple(sorted(live)))
    return by_level[::-1]
