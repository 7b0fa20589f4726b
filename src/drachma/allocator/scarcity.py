"""Scarcity: which counters of partitionable devices matter, and how little of them a problem can do with.

Called by the outlook of a careful search. A counter that would last even if every candidate drew from it can be
forgotten, which makes twins of devices that differ in nothing else.

What is left bounds what can still be chosen. One counter alone says little where devices can draw from others
instead, as partitions of several cards do; so counters are also measured together: those of the same name in all
counter sets, those of one set, and all, each in proportion to what there was of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

from drachma.allocator import counters
from drachma.allocator import problem as problems
from drachma.allocator import view as views

_SCALE: Final = 1 << 64


class _Measure:
    """A weighted sum of counters, and the least of it that options and all levels after them can draw."""

    __slots__ = ("_amounts", "_drawing", "least", "weights")

    def __init__(self, weights: dict[int, int], draws: dict[int, dict[int, int]]) -> None:
        """``draws`` has for each counter what devices draw from it."""
        self.weights = tuple(weights.items())
        self._amounts: dict[int, int] = {}
        for counter, weight in self.weights:
            for position, amount in draws[counter].items():
                self._amounts[position] = self._amounts.get(position, 0) + amount * weight
        self._drawing = _mask(self._amounts)
        self.least: dict[problems.Option, list[int]] = {}

    def look_ahead(self, problem: problems.Problem, candidates: dict[problems.Option, int]) -> bool:
        """Work out the least that is drawn for each number of devices still to choose; whether that is anything."""
        after = 0
        for level in reversed(problem.levels):
            for option in level.options:
                own = self._cheapest(problem, option, candidates[option])
                self.least[option] = [amount + after for amount in own]
            after = min(self.least[option][option.count] for option in level.options)
        return any(amounts[-1] for amounts in self.least.values())

    def _cheapest(self, problem: problems.Problem, option: problems.Option, units: int) -> list[int]:
        """Return the least that 0, 1, 2 ... devices of an option can draw."""
        if option.listed is not None:
            # Devices come in a fixed order; what is still to come is the end of the list.
            costs = [self._amounts.get(position, 0) for position in reversed(option.listed)]
        else:
            # A further share of a device draws nothing.
            free = option.count if units & problem.shared else (units & ~self._drawing).bit_count()
            drawing = views.positions(units & self._drawing & ~problem.shared) if free < option.count else ()
            costs = [0] * min(free, option.count) + sorted(self._amounts[position] for position in drawing)
        costs += [0] * (option.count - len(costs))
        return [0, *itertools.accumulate(costs[: option.count])]


class Scarcity:
    """Draws of a problem from counters that cannot serve all of its candidates."""

    def __init__(self, problem: problems.Problem, candidates: dict[problems.Option, int]) -> None:
        """``candidates`` is what is worth trying for each option."""
        self.draws = scarce_draws(problem, candidates)
        """Draws of devices from scarce counters, by position."""
        by_counter: dict[int, dict[int, int]] = {}
        for position, entry in self.draws.items():
            for counter, amount in entry:
                if amount:
                    by_counter.setdefault(counter, {})[position] = amount
        drawing = {counter: _mask(amounts) for counter, amounts in by_counter.items()}
        self._measures: list[_Measure] = []
        for weights in _weights(problem, sorted(by_counter)):
            drawn_by = 0
            for counter in weights:
                drawn_by |= drawing[counter]
            if any(_must_draw(problem, option, units & ~drawn_by) for option, units in candidates.items()):
                measure = _Measure(weights, by_counter)
                if measure.look_ahead(problem, candidates):
                    self._measures.append(measure)

    def affordable(self, option: problems.Option, available: tuple[int, ...], *, more: int) -> bool:
        """Return True if the amounts suffice for ``more`` devices of an option and for all later levels."""
        for measure in self._measures:
            needed = measure.least[option][more]
            if needed and sum([available[counter] * weight for counter, weight in measure.weights]) < needed:
                return False
        return True


def _mask(positions: Iterable[int]) -> int:
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask


def _must_draw(problem: problems.Problem, option: problems.Option, undrawn: int) -> bool:
    """Return True if an option needs a device that draws from a counter."""
    return option.listed is not None or (not undrawn & problem.shared and undrawn.bit_count() < option.count)


def scarce_draws(problem: problems.Problem, options: Iterable[problems.Option]) -> dict[int, counters.Draws]:
    """Return the draws of devices, without counters that suffice for all candidates together."""
    if problem.has_admin_access:
        # Then a device can be chosen, and draw, more than once.
        return problem.draws
    relevant = 0
    for option in options:
        relevant |= option.candidates
    drawn = [0] * len(problem.left)
    for position, draws in problem.draws.items():
        if relevant >> position & 1:
            for counter, amount in draws:
                drawn[counter] += amount
    scarce = {counter for counter, total in enumerate(drawn) if total > problem.left[counter]}
    if not scarce:
        return {}
    return {
        position: tuple(entry for entry in draws if entry[0] in scarce) for position, draws in problem.draws.items()
    }


def _weights(problem: problems.Problem, scarce: list[int]) -> list[dict[int, int]]:
    """Return the groups of counters to measure together with their weights, and each counter alone."""
    by_name: dict[str, list[int]] = {}
    by_set: dict[tuple[str, ...], list[int]] = {}
    for counter in scarce:
        *counter_set, name = problem.counters[counter]
        by_name.setdefault(name, []).append(counter)
        by_set.setdefault(tuple(counter_set), []).append(counter)
    measures = [{counter: 1} for counter in scarce]
    measures += [dict.fromkeys(group, 1) for group in by_name.values() if len(group) > 1]
    together = [group for group in by_set.values() if len(group) > 1]
    together += [scarce] if len(by_set) > 1 else []
    # Any weights give a bound; these make a used-up counter weigh the same as another.
    measures += [{counter: _SCALE // max(problem.left[counter], 1) for counter in group} for group in together]
    return measures
