"""Pictures of reports: usage by node and device, and losses to fragmentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.sax import saxutils

from drachma.simulate import nodeusage
from drachma.simulate.reports import fragmentation
from drachma.simulate.reports import utilisation as utilisations
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
_MOST_NODES: Final = 200

_GREY, _DARK = "#e5e7eb", "#6b7280"
_USED, _SHARED, _BLOCKED = "#2563eb", "#93c5fd", "#9ca3af"
_LEGEND: Final = {
    Condition.USED: _USED,
    Condition.SHARED: _SHARED,
    Condition.BLOCKED: _BLOCKED,
    Condition.FREE: _GREY,
}


def draw_utilisation(utilisation: Utilisation) -> str:
    """Return an SVG document with a line for each node, the busiest first, and a square for each device."""
    picture = Drawing(_WIDTH)
    picture.text(_MARGIN, 32, "Utilisation", size=20)
    picture.text(_MARGIN, 52, utilisations.summary(utilisation), fill=_DARK)
    x = float(_DEVICES)
    for condition, colour in _LEGEND.items():
        picture.rectangle(x, 22, width=_SQUARE, height=_SQUARE, fill=colour, border=_DARK)
        picture.text(x + _SQUARE + 5, 33, condition.value)
        x += 90
    picture.text(_BARS, 76, "cpu", size=11, fill=_DARK)
    picture.text(_BARS + 100, 76, "memory", size=11, fill=_DARK)
    picture.text(_DEVICES, 76, "devices", size=11, fill=_DARK)
    busiest = sorted(utilisation.nodes, key=lambda each: (-each.share, each.node))[:_MOST_NODES]
    y = 84.0
    for usage in sorted(busiest, key=lambda each: each.node):
        y = _node(picture, usage, utilisation.on(usage.node), y)
    common_pools = utilisation.on("")
    if common_pools:
        y = _row(picture, "on several nodes", common_pools, y)
    if len(utilisation.nodes) > len(busiest):
        picture.text(_MARGIN, y + 14, f"and {len(utilisation.nodes) - len(busiest)} nodes more", fill=_DARK)
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
    picture.text(_MARGIN, 52, "how many claims fit now, of how many if all that is free were in one piece", fill=_DARK)
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


_FONT: Final = "font-family:system-ui,sans-serif"


class Drawing:
    """Picture that grows downwards."""

    def __init__(self, width: int) -> None:
        self.width: Final = width
        self._height = 0.0
        self._elements: Final[list[str]] = []

    def rectangle(
        self,
        x: float,
        y: float,
        *,
        width: float,
        height: float,
        fill: str,
        border: str = "",
        hint: str = "",
    ) -> None:
        """Draw a rectangle. ``hint`` is its tooltip."""
        stroke = f' stroke="{border}"' if border else ""
        body = f"<title>{saxutils.escape(_printable(hint))}</title>" if hint else ""
        place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self._elements.append(f'<rect {place} rx="2" fill="{fill}"{stroke}>{body}</rect>')
        self._height = max(self._height, y + height)

    def text(
        self, x: float, y: float, content: str, *, size: int = 12, fill: str = "#111827", anchor: str = "start"
    ) -> None:
        """Draw a line of text. ``y`` is its baseline."""
        attributes = f'font-size="{size}" fill="{fill}" text-anchor="{anchor}"'
        self._elements.append(f'<text x="{x:g}" y="{y:g}" {attributes}>{saxutils.escape(_printable(content))}</text>')
        self._height = max(self._height, y + size)

    def render(self) -> str:
        """Return the document."""
        height = self._height + 16
        box = f'width="{self.width}" height="{height:g}" viewBox="0 0 {self.width} {height:g}"'
        ground = f'<rect width="{self.width}" height="{height:g}" fill="#ffffff"/>'
        lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {box} style="{_FONT}">', ground, *self._elements, "</svg>"]
        return "".join(f"{line}\n" for line in lines)


def _printable(content: str) -> str:
    """Return the text without characters that XML does not allow."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in content)


def shorten(text: str, most: int) -> str:
    """Return a text cut to the room of a number of letters."""
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"
