"""Names of devices for people: as short as they can be without meaning two devices of the same explanation."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from typing import Final

from drachma.allocator.explanation import cause, report

MAX_SHOWN: Final = 8
"""Most names that a line shows."""


class Names:
    """The devices that an explanation mentions, each under its shortest name.

    Devices that the node cannot reach do not make the names of its own devices longer, and have their pool in theirs.
    """

    def __init__(self, explanation: report.Explanation) -> None:
        ways = [way for claim in explanation.claims for request in claim.requests for way in request.alternatives]
        near: dict[str, None] = {}
        far: dict[str, None] = {}
        for way in ways:
            near.update(dict.fromkeys(way.usable))
            for entry in way.obstacles:
                group = far if isinstance(entry.cause, cause.NotReachable) else near
                group.update(dict.fromkeys(entry.devices))
        self._short: dict[str, str] = {}
        self._shorten(list(near), parts=1)
        self._shorten([*near, *far], parts=2)

    def _shorten(self, devices: list[str], *, parts: int) -> None:
        """Give those devices that have none yet the end of their full name, if it is no other device's end."""
        uses = collections.Counter(_tail(device, parts) for device in devices)
        for device in devices:
            if device not in self._short and uses[_tail(device, parts)] == 1:
                self._short[device] = _tail(device, parts)

    def of(self, device: str) -> str:
        """Return the short name of a device."""
        return self._short.get(device, device)

    def several(self, devices: Sequence[str], *, count: int | None = None) -> str:
        """Join the short names of devices; ``count`` is their number if only some are given."""
        total = len(devices) if count is None else count
        names = [self.of(device) for device in devices[:MAX_SHOWN]]
        more = total - len(names)
        return ", ".join(names) + (f" and {more} more" if more else "")


def listed(items: Iterable[str]) -> str:
    """Join texts with commas."""
    return ", ".join(items)


def _tail(name: str, parts: int) -> str:
    # Drivers and pools may have slashes in their names, devices have none.
    return "/".join(name.split("/")[-parts:])
