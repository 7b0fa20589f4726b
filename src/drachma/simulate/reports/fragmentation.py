"""Fragmentation: how much of what is free could be had by somebody who wants much of it at once.

By driver, for claims of one, two, four and more devices of one node: how many such claims would fit now, and how many
would if all free devices were on as few nodes as possible. For devices that are partitions the same by size: how many
partitions of a size can be had at once, and how many if what is free of counters were in as few counter sets as
possible. What is lost between the two is fragmentation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, Final, NamedTuple

from drachma.allocator import partitions, pool
from drachma.allocator import view as views
from drachma.scheduler.snapshot import Snapshot

_PLAIN: Final = 64
"""Fractions with larger denominators are not for people."""


class Fit(NamedTuple):
    """How many of something fit."""

    what: str
    fits: int
    ideal: int
    """How many would, were all that is free in one piece."""

    @property
    def lost(self) -> float:
        """The share that is lost, between 0 and 1."""
        return 1 - self.fits / self.ideal if self.ideal else 0.0


class DriverFragmentation(NamedTuple):
    """What is left of the devices of one driver."""

    driver: str
    fits: tuple[Fit, ...]


class _Left(NamedTuple):
    """What one node has left of a driver's devices; nodes that share devices do not come in here."""

    blocks: tuple[tuple[pool.Block, int], ...]
    """Blocks, each with the set of its free devices that are the node's own."""

    def whole(self) -> int:
        """Free devices that are no partitions."""
        return sum((free & ~block.consuming).bit_count() for block, free in self.blocks)


def measure(snapshot: Snapshot) -> tuple[DriverFragmentation, ...]:
    """What is fragmented, by driver. Devices that several nodes can use are not counted: nothing splits them."""
    by_driver: dict[str, list[_Left]] = {}
    for info in sorted(snapshot.nodes, key=lambda info: info.name):
        own: dict[str, list[tuple[pool.Block, int]]] = {}
        for block in snapshot.devices.view(info).blocks:
            mine = sum(1 << place for place, owner in enumerate(block.owners) if owner.node_name == info.name)
            if mine:
                free = partitions.free(block, snapshot.devices.state) & mine
                own.setdefault(block.pool_id.driver, []).append((block, free))
        for driver, blocks in own.items():
            by_driver.setdefault(driver, []).append(_Left(tuple(blocks)))
    return tuple(
        DriverFragmentation(driver, (*_devices(nodes), *_partitions(nodes, snapshot)))
        for driver, nodes in sorted(by_driver.items())
    )


def _devices(nodes: list[_Left]) -> Iterator[Fit]:
    """Claims of more and more devices of one node, as far as any node has so many, in use or not."""
    largest = max(sum((block.everything & ~block.consuming).bit_count() for block, _ in node.blocks) for node in nodes)
    free = [node.whole() for node in nodes]
    count = 1
    while count <= largest:
        what = "1 device" if count == 1 else f"{count} devices of one node"
        yield Fit(what, sum(each // count for each in free), sum(free) // count)
        count *= 2


def _partitions(nodes: list[_Left], snapshot: Snapshot) -> Iterator[Fit]:
    blocks = [block for node in nodes for block, _ in node.blocks if block.consuming]
    sizes = {partitions.sizes(block)[place] for block in blocks for place in views.positions(block.consuming)}
    left = sum((_left(block, snapshot) for block in blocks), Fraction(0))
    for size in sorted(sizes):
        fits = sum(_most(block, free, size, snapshot) for node in nodes for block, free in node.blocks)
        yield Fit(_title(size), fits, max(int(left / size), fits) if size else fits)


def _left(block: pool.Block, snapshot: Snapshot) -> Fraction:
    """What is left of the counter sets of a block, each of which is a whole."""
    table = block.counters
    assert table is not None, "partitions draw from counters"
    shares: dict[str, list[Fraction]] = {}
    for (name, _), limit, rest in zip(
        table.names, table.limits, snapshot.devices.state.counters_left(block), strict=True
    ):
        if limit:
            shares.setdefault(name, []).append(Fraction(max(rest, 0), limit))
    return sum((sum(each, Fraction(0)) / len(each) for each in shares.values()), Fraction(0))


def _most(block: pool.Block, free: int, size: Fraction, snapshot: Snapshot) -> int:
    """How many partitions of a size can be had at once, taking one after the other."""
    table, sizes = block.counters, partitions.sizes(block)
    if table is None:
        return 0
    left = list(snapshot.devices.state.counters_left(block))
    number = 0
    for place in views.positions(free & block.consuming):
        draws = table.draws[place]
        if sizes[place] == size and all(left[entry] >= amount for entry, amount in draws):
            number += 1
            for entry, amount in draws:
                left[entry] -= amount
    return number


def _title(size: Fraction) -> str:
    if size == 1:
        return "a whole in partitions"
    return f"a partition of {size}" if size.denominator <= _PLAIN else f"a partition of {float(size):.0%}"


# As a document, as lines


def to_document(measured: Iterable[DriverFragmentation]) -> dict[str, Any]:
    """For programs."""
    return {
        "drivers": [
            {
                "driver": each.driver,
                "fits": [
                    {"what": fit.what, "fits": fit.fits, "ideal": fit.ideal, "lost": round(fit.lost, 4)}
                    for fit in each.fits
                ],
            }
            for each in measured
        ]
    }


def rows(measured: Iterable[DriverFragmentation]) -> Iterator[tuple[str, ...]]:
    """A table, its heading first."""
    yield "DRIVER", "CLAIMS FOR", "FIT", "IDEAL", "LOST"
    for each in measured:
        for fit in each.fits:
            yield each.driver, fit.what, str(fit.fits), str(fit.ideal), f"{fit.lost:.0%}"
