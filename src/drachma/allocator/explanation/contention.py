"""Contention: what the requests of a conflict want more of than there is, taken together.

Three things can run out although every request has enough for itself: devices, counters that devices draw from, and
the capacity of shared devices. All sums are bounds in favour of the requests: what is reported here is short for
certain, and a conflict can have other reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from drachma.allocator import capacity
from drachma.allocator import problem as problems
from drachma.allocator import view as views
from drachma.allocator.explanation import amount, report
from drachma.values import quantity

Usable = Mapping[problems.Option, int]


def find(
    problem: problems.Problem, options: Iterable[problems.Option], usable: Usable
) -> tuple[report.Contention, ...]:
    """Return the resources that these options, one of each request, exceed together but not alone."""
    wanting = [option for option in options if not option.way.admin_access]
    if any(usable[option].bit_count() < option.count for option in wanting):
        return ()
    return (
        *_devices(problem, wanting, usable),
        *_counters(problem, wanting, usable),
        *_capacities(problem, wanting, usable),
    )


def _devices(problem: problems.Problem, options: list[problems.Option], usable: Usable) -> Iterable[report.Contention]:
    union = 0
    for option in options:
        union |= usable[option]
    needed = sum(option.count for option in options)
    if len(options) > 1 and union.bit_count() < needed and not union & problem.shared:
        yield report.Contention(kind="devices", needed=str(needed), available=str(union.bit_count()))


def _counters(problem: problems.Problem, options: list[problems.Option], usable: Usable) -> Iterable[report.Contention]:
    for number, available in enumerate(problem.left):
        needed = 0
        for option in options:
            draws = sorted(
                dict(problem.draws.get(position, ())).get(number, 0)
                for position in views.positions(usable[option])
                if not problem.shared >> position & 1
            )
            needed += sum(draws[: option.count])
        if needed > available:
            yield _counter(problem, number, needed=needed, available=available)


def _counter(problem: problems.Problem, number: int, *, needed: int, available: int) -> report.Contention:
    position = next(place for place, draws in problem.draws.items() if any(entry == number for entry, _ in draws))
    block, place = problem.view.locate(position)
    assert block.counters is not None, "what draws has counters"
    # The problem numbers the counters of all pools one after the other, the pool only its own.
    shift = problem.draws[position][0][0] - block.counters.draws[place][0][0]
    counter_set, name = block.counters.names[number - shift]
    like = amount.counter_amount(block, counter_set, name)
    return report.Contention(
        kind="counter",
        name=f"{name} of {counter_set} in pool {block.pool_id}",
        needed=amount.spell(needed, like=like),
        available=amount.spell(available, like=like),
    )


def _capacities(
    problem: problems.Problem, options: list[problems.Option], usable: Usable
) -> Iterable[report.Contention]:
    union = 0
    for option in options:
        union |= usable[option] & problem.shared
        if usable[option] & ~problem.shared:
            # Some of it could come from devices that are not shared.
            return
    needed: dict[str, int] = {}
    available: dict[str, int] = {}
    like: dict[str, quantity.Quantity] = {}
    for option in options:
        for name, least_amount in _least(problem, option, usable[option]).items():
            needed[name] = needed.get(name, 0) + least_amount * option.count
    for position in views.positions(union):
        device = problem.view.device(position)
        option = next(entry for entry in options if usable[entry] >> position & 1)
        for name, device_amount in zip(
            option.shape.amounts(device) or {}, problem.room(option, position)[1], strict=True
        ):
            available[name] = available.get(name, 0) + device_amount
            like[name] = capacity.value_of(device.capacity[name])
    for name in sorted(needed):
        if needed[name] > available[name]:
            yield report.Contention(
                kind="capacity",
                name=name,
                needed=amount.spell(needed[name], like=like[name]),
                available=amount.spell(available[name], like=like[name]),
            )


def _least(problem: problems.Problem, option: problems.Option, units: int) -> dict[str, int]:
    """Return the least amount of each capacity that the option takes from every device."""
    least: dict[str, int] | None = None
    for position in views.positions(units):
        consumed = option.shape.amounts(problem.view.device(position)) or {}
        amounts = {name: quantity.nanos for name, quantity in consumed.items()}
        if least is None:
            least = amounts
        else:
            least = {name: min(least[name], amounts[name]) for name in least if name in amounts}
    return least or {}
