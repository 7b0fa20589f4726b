"""Grid of nodes and devices as text: one mark per device, or one mark per node if the grid would not fit. Pure."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from drachma.cli.inventory.cluster import Cluster, Device
from drachma.values import naturalorder

FREE: Final = "·"
ALLOCATED: Final = "■"
SHARED: Final = "▣"
TAINTED: Final = "x"
UNPUBLISHED: Final = "!"

_SHADES: Final = "░▒▓"
"""Marks of a node with some devices in use: less than a third, less than two thirds, more."""
_FULL: Final = "█"
_GAP: Final = 3
_MOST_MARKS: Final = 32
"""Devices of a node that get a mark of their own; more are counted."""

Paint = Callable[[str], str]
"""Adds colour to the marks of one node."""


class _NodeDevices(NamedTuple):
    """Devices of one driver on one node, as marks."""

    name: str
    marks: str

    @property
    def used(self) -> int:
        return len(self.marks) - self.marks.count(FREE) - self.marks.count(TAINTED)

    @property
    def shade(self) -> str:
        """Mark of the whole node."""
        if self.used == len(self.marks):
            return _FULL
        return _SHADES[len(_SHADES) * self.used // len(self.marks)] if self.used else FREE

    @property
    def counts(self) -> str:
        return f"{self.used}/{len(self.marks)}"


def lines(cluster: Cluster, *, width: int, height: int, driver: str = "", paint: Paint = str) -> Iterator[str]:
    """Yield the lines of the grid, a part for each driver, at most ``width`` columns wide.

    If the parts need more than ``height`` lines, each node gets one mark instead of a mark per device.
    """
    by_driver: dict[str, list[Device]] = {}
    for device in (*cluster.devices, *cluster.unpublished):
        if driver in ("", device.pool.driver):
            by_driver.setdefault(device.pool.driver, []).append(device)
    if not by_driver:
        yield "No devices are published."
        return
    parts = {name: _nodes(cluster, devices) for name, devices in sorted(by_driver.items())}
    detailed = [line for name, nodes in parts.items() for line in _detailed(name, nodes, width=width, paint=paint)]
    if len(detailed) < height:
        yield from detailed
        yield f"{FREE} free   {ALLOCATED} allocated   {SHARED} shared   {TAINTED} tainted   {UNPUBLISHED} not published"
        return
    for name, nodes in parts.items():
        yield from _compact(name, nodes, width=width, paint=paint)
    yield f"one mark a node: {FREE} all free   ░▒▓ partly in use   █ full"


def _nodes(cluster: Cluster, devices: Sequence[Device]) -> list[_NodeDevices]:
    marks: dict[str, list[str]] = collections.defaultdict(list)
    for each in sorted(
        devices, key=lambda each: (naturalorder.key(each.pool.name), naturalorder.key(each.device.name))
    ):
        marks[each.node].append(_mark(cluster, each))
    return [_NodeDevices(name, "".join(marks[name])) for name in sorted(marks, key=naturalorder.key)]


def _mark(cluster: Cluster, device: Device) -> str:
    uses = len(cluster.uses.get(device.id, ()))
    if not device.pool.slices:
        return UNPUBLISHED
    if uses:
        return ALLOCATED if uses == 1 else SHARED
    return TAINTED if device.device.taints else FREE


def _title(driver: str, nodes: Sequence[_NodeDevices]) -> str:
    devices, used = sum(len(each.marks) for each in nodes), sum(each.used for each in nodes)
    return f"{driver}: {used} of {devices} in use ({100 * used // devices} %), {len(nodes)} nodes"


def _detailed(driver: str, nodes: Sequence[_NodeDevices], *, width: int, paint: Paint) -> Iterator[str]:
    yield _title(driver, nodes)
    label = max(len(each.name) for each in nodes)
    shown = min(max(len(each.marks) for each in nodes), _MOST_MARKS)
    counts = max(len(each.counts) for each in nodes)
    cell = label + 1 + shown + 1 + counts
    columns = max((width + _GAP) // (cell + _GAP), 1)
    rows = -(-len(nodes) // columns)
    for row in range(rows):
        # Nodes run down the columns, as names do in the output of ls.
        own = nodes[row::rows]
        cells = [f"{_cell(each, label=label, shown=shown, paint=paint)} {each.counts:>{counts}}" for each in own]
        yield (" " * _GAP).join(cells)
    yield ""


def _cell(node: _NodeDevices, *, label: int, shown: int, paint: Paint) -> str:
    if len(node.marks) > _MOST_MARKS:
        full = shown * node.used // len(node.marks)
        return f"{node.name.ljust(label)} {paint(ALLOCATED * full + FREE * (shown - full))}"
    return f"{node.name.ljust(label)} {paint(node.marks)}{' ' * (shown - len(node.marks))}"


def _compact(driver: str, nodes: Sequence[_NodeDevices], *, width: int, paint: Paint) -> Iterator[str]:
    yield _title(driver, nodes)
    label = max(len(each.name) for each in nodes)
    row = max((width - label - 1) // 10 * 10, 10)
    for first in range(0, len(nodes), row):
        part = nodes[first : first + row]
        yield f"{part[0].name.ljust(label)} {paint(''.join(each.shade for each in part))}"
    yield ""
