"""The device map: one tile for each node, as JSON that the browser draws on a canvas.

A tile names its strings once and refers to them by number. The browser says which version it has, and gets the tiles
that changed since; a browser of another generation gets all of them.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from drachma.claims import identity
from drachma.web.models import Model, is_ready
from drachma.web.rows import DeviceCell, DeviceState

STATES: Final = {state: number for number, state in enumerate(DeviceState)}

_encode = msgspec.json.Encoder().encode


class DeviceMap:
    """Encoded tiles of one model, each made again when its node has changed."""

    def __init__(self, model: Model) -> None:
        self._model: Final = model
        self._tiles: Final[dict[str, tuple[int, bytes]]] = {}

    def encode(self, *, generation: int, since: int) -> bytes:
        """Return all tiles that changed after a version; those that are gone have no devices and no node.

        All tiles are returned, and marked as all, if ``since`` is before the oldest change that is remembered.
        """
        model = self._model
        model.refresh()
        is_full = since < model.oldest_change
        since = -1 if is_full else since
        tiles = []
        for name, version in model.node_versions.items():
            if version <= since:
                continue
            cached = self._tiles.get(name)
            if cached is None or cached[0] != version:
                cached = self._tiles[name] = version, _encode(self._tile(name))
            tiles.append(cached[1])
        full = b"true" if is_full else b"false"
        head = b'{"generation":%d,"version":%d,"full":%s,"tiles":[' % (generation, model.version, full)
        return head + b",".join(tiles) + b"]}"

    def _tile(self, name: str) -> dict[str, Any]:
        strings: dict[str, int] = {}

        def number(text: str) -> int:
            return strings.setdefault(text, len(strings))

        cells = self._model.cells_of(name)
        devices = [self._device(cell, number) for cell in cells]
        pools = self._model.pools
        drawn = {
            f"{cell.id.driver} {cell.id.pool} {cell.group}": round(
                100 * pools[identity.PoolID(cell.id.driver, cell.id.pool)].drawn.get(cell.group, 0.0)
            )
            for cell in cells
            if cell.group
        }
        node = self._model.nodes.get(name)
        return {
            "n": name,
            "r": 1 if node is not None and is_ready(node) else 0,
            "k": 1 if node is not None else 0,
            "s": list(strings),
            "d": devices,
            **({"c": drawn} if drawn else {}),
        }

    def _device(self, cell: DeviceCell, number: Any) -> list[int]:
        """Return a device: name, driver, pool, state, share, team, pod, class, model, counter set, size, problem."""
        return [
            number(cell.id.device),
            number(cell.id.driver),
            number(cell.id.pool),
            STATES[cell.state],
            round(cell.share * 100),
            number(cell.claims[0].namespace if cell.claims else ""),
            number(str(cell.pods[0]) if cell.pods else ""),
            number(cell.classes[0] if cell.classes else ""),
            number(cell.model),
            number(cell.group),
            round(cell.size * 100),
            number(cell.problem),
        ]
