"""A cluster before and after a change: nodes whose devices differ, as cells that templates draw next to each other."""

from __future__ import annotations

from typing import Final, NamedTuple

from drachma.simulate.reports.utilisation import Condition, PoolUse, Utilisation

_MOST_CHANGED: Final = 60
_MOST_UNCHANGED: Final = 6
"""Number of unchanged nodes next to changed ones, so that readers recognise their cluster."""

_MOST_CELLS: Final = 128
_IN_USE: Final = (Condition.USED, Condition.SHARED)


class Cell(NamedTuple):
    """A device at one time."""

    title: str
    state: str
    is_changed: bool


class NodeChange(NamedTuple):
    """Devices of a node before and after; without a name, devices that several nodes can use."""

    name: str
    before: tuple[Cell, ...]
    after: tuple[Cell, ...]
    is_new: bool
    is_changed: bool
    hidden: int
    """Devices that are left out."""


class Comparison(NamedTuple):
    """Nodes that differ, some that do not, and totals."""

    nodes: tuple[NodeChange, ...]
    more_changed: int
    """Changed nodes that are left out."""
    more_unchanged: int
    used_before: int
    used_after: int
    devices_before: int
    devices_after: int


def compare(before: Utilisation, after: Utilisation) -> Comparison:
    """Return the nodes of two times side by side, the changed ones first. Costs the number of devices."""
    old_names = {each.node for each in before.nodes}
    names = sorted({*before.by_node, *after.by_node, *old_names, *(each.node for each in after.nodes)})
    rows = [_node(name, before.on(name), after.on(name), is_new=bool(name) and name not in old_names) for name in names]
    differing = [row for row in rows if row.is_changed]
    same = [row for row in rows if not row.is_changed]
    return Comparison(
        (*differing[:_MOST_CHANGED], *same[:_MOST_UNCHANGED]),
        max(len(differing) - _MOST_CHANGED, 0),
        max(len(same) - _MOST_UNCHANGED, 0),
        _used(before),
        _used(after),
        before.devices,
        after.devices,
    )


def _used(utilisation: Utilisation) -> int:
    return sum(utilisation.count(condition) for condition in _IN_USE)


def _node(name: str, before: tuple[PoolUse, ...], after: tuple[PoolUse, ...], *, is_new: bool) -> NodeChange:
    old, new = _cells(before), _cells(after)
    differences = {key for key in {*old, *new} if old.get(key) != new.get(key)}
    keys = sorted({*old, *new})
    if len(keys) > _MOST_CELLS:
        # Devices that differ are never left out before others.
        keys = sorted(sorted(keys, key=lambda key: key not in differences)[:_MOST_CELLS])

    def row(cells: _Cells) -> tuple[Cell, ...]:
        return tuple(Cell(cells[key][1], cells[key][0], key in differences) for key in keys if key in cells)

    return NodeChange(name, row(old), row(new), is_new, bool(differences) or is_new, len({*old, *new}) - len(keys))


_Cells = dict[tuple[str, str, int, str], tuple[str, str]]
"""State and title by driver, pool, and device in natural order."""


def _cells(pools: tuple[PoolUse, ...]) -> _Cells:
    cells: _Cells = {}
    for pool in pools:
        for place, device in enumerate(pool.devices):
            holders = f", {', '.join(device.claims[:3])}" if device.claims else ""
            key = pool.pool_id.driver, pool.pool_id.pool, place, device.name
            cells[key] = device.condition.value, f"{device.name}: {device.condition.value}{holders}"
    return cells
