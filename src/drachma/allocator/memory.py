"""Memory: the state of a search, and which states led nowhere.

Two states are the same to what lies ahead if they agree on what later levels look at: the devices these could use,
the constraints that still apply to them, counters, groups and shares. A careful search asks before it goes deeper.
"""

from __future__ import annotations

import marshal
from typing import Final, NamedTuple

from drachma.allocator import problem as problems

_REMEMBERED: Final = 50_000


class State(NamedTuple):
    """What was chosen so far, as far as later choices depend on it."""

    taken: int
    """Devices in use, by others or by what was chosen."""
    chosen: tuple[int, ...]
    """What the constraints of the current claim hold."""
    left: tuple[int, ...]
    """What is left of counters."""
    groups: tuple[int, ...]
    """The compatibility groups still open on counter sets."""
    shares: dict[int, tuple[int, ...]]
    """What was taken of the capacities of shared devices, by position."""
    marks: tuple[int, ...]
    """For each claim the devices chosen for it; kept only if there are requests for admin access."""


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

    def key(self, option: problems.Option, number: int, *, todo: int, state: State, held: int) -> bytes:
        """What the search from here on depends on: before device ``number`` of an option."""
        # After its first device an option chooses from what is left to do; "All" does not choose.
        is_choosing = number > 0 and option.listed is None
        parts = (
            option.level,
            option.number,
            number,
            todo if is_choosing else 0,
            state.taken & self._relevant[option.level + (1 if is_choosing else 0)],
            held if self._counts_results[option.claim] else 0,
            tuple([state.chosen[constraint] for constraint in self._live[option.level]]),
            state.left,
            state.groups,
            tuple(sorted(state.shares.items())),
            state.marks,
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
    """For each level, and for the end: the devices that it or any later level could look at."""
    found = [0]
    relevant = 0
    for level in reversed(problem.levels):
        for option in level.options:
            relevant |= option.candidates | option.errors
            for position in option.listed or ():
                relevant |= 1 << position
        found.append(relevant)
    return found[::-1]


def _live_constraints(problem: problems.Problem) -> list[tuple[int, ...]]:
    """For each level, the constraints of its claim that it or a later level of the claim is covered by."""
    found: list[tuple[int, ...]] = []
    live: set[int] = set()
    claim = -1
    for level in reversed(problem.levels):
        if level.claim != claim:
            live = set()
            claim = level.claim
        live |= {check.number for option in level.options for check in option.checks}
        found.append(tuple(sorted(live)))
    return found[::-1]
