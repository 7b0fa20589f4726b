"""Fragmentation: free devices that cannot be used together because they are on different nodes.

For each driver, and for claims of one, two, four and more devices of one node, the report has the number of claims that
fit now, and the number that would fit if all free devices were on as few nodes as possible. For partitions it has the
same by size: how many partitions of a size fit now, and how many if the free counters were in as few counter sets as
possible. The difference is fragmentation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, Final, NamedTuple

from drachma.allocator import partitions, pool
from drachma.allocator import view as views
from drachma.scheduler.snapshot import Snapshot

_PLAIN: Final = 64
"""Largest denominator of fractions that are shown."""


class Fit(NamedTuple):
    """Number of claims or partitions that fit."""

    what: str
    fits: int
    ideal: int
    """Number that would fit without fragmentation."""

    @property
    def lost(self) -> float:
        """Lost share, between 0 and 1."""
        return 1 - self.fits / self.ideal if self.ideal else 0.0


class DriverFragmentation(NamedTuple):
    """Free devices of one driver."""

    driver: str
    fits: tuple[Fit, ...]


class _Left(NamedTuple):
    """Free devices of a driver on one node. Devices that nodes share are not included."""

    blocks: tuple[tuple[pool.Block, int], ...]
    """Blocks, each with the set of its free local devices."""

    def whole(self) -> int:
        """Return the number of free devices that are no partitions."""
        return sum((free & ~block.consuming).bit_count() for block, free in self.blocks)


def measure(snapshot: Snapshot) -> tuple[DriverFragmentation, ...]:
    """Return the fragmentation by driver, without devices that several nodes can use, since nothing splits them."""
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
    """Yield the fit of claims of more and more devices of one node, up to the largest node."""
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
    free_fraction = sum((_left(block, snapshot) for block in blocks), Fraction(0))
    for size in sorted(sizes):
        fits = sum(_most(block, free, size, snapshot) for node in nodes for block, free in node.blocks)
        yield Fit(_title(size), fits, max(int(free_fraction / size), fits) if size else fits)


def _left(block: pool.Block, snapshot: Snapshot) -> Fraction:
    """Return the fraction left of the counter sets of a block."""
    table = block.counters
    assert table is not None, "partitions draw from counters"
    shares: dict[str, list[Fraction]] = {}
    for (name, _), limit, amount in zip(
        table.names, table.limits, snapshot.devices.state.counters_left(block), strict=True
    ):
        if limit:
            shares.setdefault(name, []).append(Fraction(max(amount, 0), limit))
    return sum((sum(each, Fraction(0)) / len(each) for each in shares.values()), Fraction(0))


def _most(block: pool.Block, free: int, size: Fraction, snapshot: Snapshot) -> int:
    """Return the number of partitions of a size that fit at once, taking one after the other."""
    table, sizes = block.counters, partitions.sizes(block)
    if table is None:
        return 0
    counters_left = list(snapshot.devices.state.counters_left(block))
    number = 0
    for place in views.positions(free & block.consuming):
        draws = table.draws[place]
        if sizes[place] == size and all(counters_left[entry] >= amount for entry, amount in draws):
            number += 1
            for entry, amount in draws:
                counters_left[entry] -= amount
    return number


def _title(size: Fraction) -> str:
    if size == 1:
        return "a whole in partitions"
    return f"a partition of {size}" if size.denominator <= _PLAIN else f"a partition of {float(size):.0%}"


# Documents and lines


def to_document(fragmentation: Iterable[DriverFragmentation]) -> dict[str, Any]:
    """Return the fragmentation as a document."""
    return {
        "drivers": [
            {
                "driver": each.driver,
                "fits": [
                    {"what": fit.what, "fits": fit.fits, "ideal": fit.ideal, "lost": round(fit.lost, 4)}
                    for fit in each.fits
                ],
            }
            for each in fragmentation
        ]
    }


def rows(fragmentation: Iterable[DriverFragmentation]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table, its heading first."""
    yield "DRIVER", "CLAIMS FOR", "FIT", "IDEAL", "LOST"
    for each in fragmentation:
        for fit in each.fits:
            yield each.driver, fit.what, str(fit.fits), str(fit.ideal), f"{fit.lost:.0%}"
