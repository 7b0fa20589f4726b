"""Pictures of reports: usage by node and device, and losses to fragmentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drachma.simulate import nodeusage
from drachma.simulate.reports import fragmentation, nodemap
from drachma.simulate.reports import utilisation as utilisations
from drachma.simulate.reports.drawing import Drawing, shorten
from drachma.simulate.reports.utilisation import Condition, DeviceUse, PoolUse, Utilisation

_WIDTH: Final = 960
_MARGIN: Final = 20
_NAMES: Final = 26
_BARS: Final = 210
"""Positions of bars and of devices."""
_DEVICES: Final = 420
_SQUARE: Final = 14
_STEP: Final = 17
_PER_LINE: Final = 30
_MOST_NODES: Final = 60
"""Nodes that get a line each; a map shows more."""

_GREY, _DARK = "#e5e7eb", "#6b7280"
_USED, _SHARED, _BLOCKED = "#2563eb", "#93c5fd", "#9ca3af"
_LEGEND: Final = {
    Condition.USED: _USED,
    Condition.SHARED: _SHARED,
    Condition.BLOCKED: _BLOCKED,
    Condition.FREE: _GREY,
}


def draw_utilisation(utilisation: Utilisation) -> str:
    """Return an SVG document with a line for each node and a square for each device, or a map of many nodes."""
    picture = Drawing(_WIDTH)
    picture.text(_MARGIN, 32, "Utilisation", size=20)
    picture.text(_MARGIN, 52, utilisations.summary(utilisation), fill=_DARK)
    if len(utilisation.nodes) > _MOST_NODES:
        nodemap.draw(picture, utilisation, y=84.0)
        return picture.render()
    x = float(_DEVICES)
    for condition, colour in _LEGEND.items():
        picture.rectangle(x, 22, width=_SQUARE, height=_SQUARE, fill=colour, border=_DARK)
        picture.text(x + _SQUARE + 5, 33, condition.value)
        x += 90
    picture.text(_BARS, 76, "cpu", size=11, fill=_DARK)
    picture.text(_BARS + 100, 76, "memory", size=11, fill=_DARK)
    picture.text(_DEVICES, 76, "devices", size=11, fill=_DARK)
    y = 84.0
    for usage in utilisation.nodes:
        y = _node(picture, usage, utilisation.on(usage.node), y)
    common_pools = utilisation.on("")
    if common_pools:
        y = _row(picture, "on several nodes", common_pools, y)
    return picture.render()


def _node(picture: Drawing, usage: nodeusage.NodeUsage, pools: Sequence[PoolUse], y: float) -> float:
    for number, name in enumerate(("cpu", "memory")):
        share = min(usage.resources.get(name, 0.0), 1.0)
        x = _BARS + 100 * number
        hint = f"{usage.node}: {share:.0%} of {name}"
        picture.rectangle(x, y + 3, width=88, height=8, fill=_GREY, hint=hint)
        if share:
            picture.rectangle(x, y + 3, width=88 * share, height=8, fill=_USED, hint=hint)
    return _row(picture, usage.node, pools, y)


def _row(picture: Drawing, name: str, pools: Sequence[PoolUse], y: float) -> float:
    """Draw a name and the devices of pools, and return the position of the next row."""
    picture.text(_MARGIN, y + 12, shorten(name, _NAMES))
    devices = [(pool, each) for pool in pools for each in pool.devices]
    for number, (pool, each) in enumerate(devices):
        line, place = divmod(number, _PER_LINE)
        _square(picture, each, pool, x=_DEVICES + place * _STEP, y=y + line * _STEP)
    return y + _STEP * max(1, -(-len(devices) // _PER_LINE)) + 5


def _square(picture: Drawing, device: DeviceUse, pool: PoolUse, *, x: float, y: float) -> None:
    holders = f" by {', '.join(device.claims)}" if device.claims else ""
    hint = f"{pool.pool_id.driver}/{pool.pool_id.pool}/{device.name}: {device.condition}{holders}"
    fill = _GREY if device.condition is Condition.SHARED else _LEGEND[device.condition]
    picture.rectangle(x, y, width=_SQUARE, height=_SQUARE, fill=fill, border=_DARK, hint=hint)
    if device.condition is Condition.SHARED:
        # As full as its fullest capacity, and always visible.
        height = _SQUARE * max(min(device.share, 1.0), 0.2)
        picture.rectangle(x, y + _SQUARE - height, width=_SQUARE, height=height, fill=_SHARED, hint=hint)


def draw_fragmentation(drivers: Sequence[fragmentation.DriverFragmentation]) -> str:
    """Return an SVG document with the actual and the ideal number of claims of every size."""
    picture = Drawing(_WIDTH)
    picture.text(_MARGIN, 32, "Fragmentation", size=20)
    picture.text(
        _MARGIN, 52, "claims that fit now, of those that would fit if all free devices were on one node", fill=_DARK
    )
    y = 84.0
    for each in drivers:
        picture.text(_MARGIN, y, each.driver, size=14)
        y += 10
        most = max((fit.ideal for fit in each.fits), default=0) or 1
        for fit in each.fits:
            hint = f"{fit.what}: {fit.fits} of {fit.ideal}"
            picture.text(_MARGIN + 12, y + 13, fit.what)
            picture.rectangle(_BARS, y + 2, width=max(500 * fit.ideal / most, 1), height=14, fill=_GREY, hint=hint)
            if fit.fits:
                picture.rectangle(_BARS, y + 2, width=500 * fit.fits / most, height=14, fill=_USED, hint=hint)
            lost = f", {fit.lost:.0%} lost" if fit.fits < fit.ideal else ""
            picture.text(_BARS + 510, y + 13, f"{fit.fits} of {fit.ideal}{lost}", fill=_DARK)
            y += 22
        y += 24
    if not drivers:
        picture.text(_MARGIN, y, "no node has devices of its own", fill=_DARK)
    return picture.render()
