"""Partitions: devices that draw from the same counters, and the partitions that each allocation costs.

A device that draws nothing from counters is a whole of its own. One that does has a size: its share of the counter
sets that it draws from. A partition is lost when a counter that it draws from no longer has enough, or a device of
another compatibility group was given away; the larger a lost partition, the worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from drachma.allocator import allocated, pool
from drachma.allocator import view as views

WHOLE: Final = Fraction(1)
_SIZES: Final = "sizes of partitions"


def sizes(block: pool.Block) -> Sequence[Fraction]:
    """Return each device's share of all counters in the counter sets that it draws from."""
    remembered: Sequence[Fraction] | None = block.cache.get(_SIZES)
    if remembered is None:
        remembered = [_size(block, place) for place in range(len(block.devices))]
        block.remember(_SIZES, remembered)
    return remembered


def _size(block: pool.Block, place: int) -> Fraction:
    table = block.counters
    if table is None or not table.draws[place]:
        return WHOLE
    sets = {table.names[entry][0] for entry, _ in table.draws[place]}
    number = sum(limit > 0 and name in sets for limit, (name, _) in zip(table.limits, table.names, strict=True))
    shares = [Fraction(amount, table.limits[entry]) for entry, amount in table.draws[place] if table.limits[entry]]
    return sum(shares, Fraction(0)) / number if number else WHOLE


def free(block: pool.Block, state: allocated.AllocatedState) -> int:
    """Return the devices of a block that can be allocated now: not taken, with enough counters left.

    A shareable device is free as long as no claim consumes any of it.
    """
    places = block.everything & ~state.taken(block) & ~state.partly_used(block)
    if block.counters is None:
        return places
    available, groups = state.counters_left(block), state.groups_left(block)
    return sum(1 << place for place in views.positions(places) if _has_enough(block, place, available, groups))


def losses(block: pool.Block, state: allocated.AllocatedState) -> list[tuple[Fraction, ...]]:
    """Return, for every device, the sizes of the partitions that its allocation costs, the largest first."""
    table = block.counters
    if table is None:
        return [()] * len(block.devices)
    vacant, all_sizes = free(block, state), sizes(block)
    available, groups = state.counters_left(block), state.groups_left(block)
    drawing: dict[int, int] = {}
    for place in views.positions(vacant):
        for entry, _ in table.draws[place]:
            drawing[entry] = drawing.get(entry, 0) | 1 << place
    result: list[tuple[Fraction, ...]] = []
    for place, draws in enumerate(table.draws):
        left_then, groups_then = list(available), list(groups)
        concerned = 0
        for entry, amount in draws:
            left_then[entry] -= amount
            concerned |= drawing.get(entry, 0)
        for entry, bits in table.bonds[place]:
            groups_then[entry] &= bits
        lost_sizes = [
            all_sizes[neighbour]
            for neighbour in views.positions(concerned & ~(1 << place))
            if not _has_enough(block, neighbour, left_then, groups_then)
        ]
        result.append(tuple(sorted(lost_sizes, reverse=True)))
    return result


def _has_enough(block: pool.Block, place: int, available: Sequence[int], groups: Sequence[int]) -> bool:
    table = block.counters
    assert table is not None, "only devices with counters are asked"
    return all(available[entry] >= amount for entry, amount in table.draws[place]) and all(
        groups[entry] & bits for entry, bits in table.bonds[place]
    )
