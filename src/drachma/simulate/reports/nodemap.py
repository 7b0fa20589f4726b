"""Map of a large cluster: one tile a node for each driver, darker with the share of its devices in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from drachma.simulate import nodeusage
from drachma.simulate.reports.drawing import Drawing
from drachma.simulate.reports.utilisation import Condition, Utilisation
from drachma.values import naturalorder

_MARGIN: Final = 20
_LABELS: Final = 150
"""Room for the name of the first node of each line."""
_LARGE, _SMALL = 16, 9
_MOST_LARGE: Final = 1_000
"""Nodes that get large tiles."""
_SHADES: Final = ("#e5e7eb", "#bfdbfe", "#93c5fd", "#3b82f6", "#1e3a8a")
_WORDS: Final = ("none in use", "up to a third", "up to two thirds", "more", "all in use")
_DARK: Final = "#6b7280"


class _Tile(NamedTuple):
    """One node: its name, and its devices of a driver, in use and in all."""

    node: str
    used: int
    devices: int
    cpu: float

    @property
    def shade(self) -> int:
        if not self.used:
            return 0
        return len(_SHADES) - 1 if self.used >= self.devices else 1 + min(3 * self.used // self.devices, 2)

    @property
    def hint(self) -> str:
        return f"{self.node}: {self.used} of {self.devices} devices in use, {self.cpu:.0%} of cpu"


def draw(picture: Drawing, utilisation: Utilisation, *, y: float) -> float:
    """Draw a map for each driver below a position, and return the position below the last one."""
    x = float(_MARGIN)
    for shade, word in zip(_SHADES, _WORDS, strict=True):
        picture.rectangle(x, y - 12, width=_LARGE - 2, height=_LARGE - 2, fill=shade, border=_DARK)
        picture.text(x + _LARGE + 4, y, word)
        x += 150
    y += 26
    by_driver: dict[str, list[_Tile]] = {}
    for usage in sorted(utilisation.nodes, key=lambda each: naturalorder.key(each.node)):
        for driver, tile in _tiles(utilisation, usage).items():
            by_driver.setdefault(driver, []).append(tile)
    for driver, tiles in sorted(by_driver.items()):
        y = _draw_driver(picture, driver, tiles, y)
    return y


def _tiles(utilisation: Utilisation, usage: nodeusage.NodeUsage) -> dict[str, _Tile]:
    """Return the tile of a node for each driver that has devices there."""
    counts: dict[str, list[int]] = {}
    for pool in utilisation.on(usage.node):
        count = counts.setdefault(pool.pool_id.driver, [0, 0])
        count[0] += len(pool.devices) - pool.count(Condition.FREE)
        count[1] += len(pool.devices)
    cpu = usage.resources.get("cpu", 0.0)
    return {driver: _Tile(usage.node, used, devices, cpu) for driver, (used, devices) in counts.items()}


def _draw_driver(picture: Drawing, driver: str, tiles: Sequence[_Tile], y: float) -> float:
    used, devices = sum(each.used for each in tiles), sum(each.devices for each in tiles)
    share = used / devices if devices else 0.0
    title = f"{driver}: {used} of {devices} devices in use ({share:.0%}), on {len(tiles)} nodes"
    picture.text(_MARGIN, y, title, size=14)
    y += 10
    step = _LARGE if len(tiles) <= _MOST_LARGE else _SMALL
    # Lines of whole tens, so that the number of a node can be counted.
    per_line = (picture.width - _LABELS - 2 * _MARGIN) // step // 10 * 10
    for first in range(0, len(tiles), per_line):
        line = tiles[first : first + per_line]
        picture.text(_MARGIN, y + step - 2, line[0].node, size=min(step, 11), fill=_DARK)
        for place, tile in enumerate(line):
            x = _LABELS + place * step
            picture.rectangle(x, y, width=step - 2, height=step - 2, fill=_SHADES[tile.shade], hint=tile.hint)
        y += step
    return y + 28
