"""Scarcity: which counters of partitionable devices matter, and how little of them a problem can do with.

Called by the outlook of a careful search. A counter that would last even if every candidate drew from it can be
forgotten, which makes twins of devices that differ in nothing else.
"""

from __future__ import annotations

import itertools

from drachma.allocator import counters
from drachma.allocator import problem as problems
from drachma.allocator import view as views


def scarce_draws(problem: problems.Problem, options: list[problems.Option]) -> dict[int, counters.Draws]:
    """What devices draw, without the counters that would last even if everybody drew from them."""
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


def least_draws(
    problem: problems.Problem, candidates: dict[problems.Option, int], *, draws: dict[int, counters.Draws]
) -> dict[problems.Option, list[dict[int, int]]]:
    """For each option and number of devices still to choose: the least that it and all later levels can draw."""
    scarce = sorted({counter for entry in draws.values() for counter, _ in entry})
    after = dict.fromkeys(scarce, 0)
    found: dict[problems.Option, list[dict[int, int]]] = {}
    for level in reversed(problem.levels):
        for option in level.options:
            sums = {
                counter: _cheapest(problem, option, candidates[option], amounts=_amounts(draws, counter))
                for counter in scarce
            }
            found[option] = [
                {counter: sums[counter][more] + after[counter] for counter in scarce}
                for more in range(option.count + 1)
            ]
        after = {counter: min(found[option][option.count][counter] for option in level.options) for counter in scarce}
    return found


def _amounts(draws: dict[int, counters.Draws], counter: int) -> dict[int, int]:
    return {position: amount for position, entry in draws.items() for number, amount in entry if number == counter}


def _cheapest(problem: problems.Problem, option: problems.Option, units: int, *, amounts: dict[int, int]) -> list[int]:
    """The least that 0, 1, 2 ... devices of an option can draw from a counter."""
    if option.listed is not None:
        # Devices come in a fixed order; what is still to come is the end of the list.
        costs = [amounts.get(position, 0) for position in reversed(option.listed)]
    else:
        # A further share of a device draws nothing.
        costs = sorted(amounts.get(position, 0) for position in views.positions(units & ~problem.shared))
        if units & problem.shared:
            costs = [0] * option.count + costs
    costs += [0] * (option.count - len(costs))
    return [0, *itertools.accumulate(costs[: option.count])]
