"""Names of devices for people: as short as they can be without meaning two devices of the same explanation."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from typing import Final

from drachma.allocator.explanation import report

MAX_SHOWN: Final = 8
"""How many names a line shows."""


class Names:
    """The devices that an explanation mentions, each under its shortest name."""

    def __init__(self, explanation: report.Explanation) -> None:
        everything = dict.fromkeys(
            name
            for claim in explanation.claims
            for request in claim.requests
            for way in request.alternatives
            for name in (*way.usable, *(device for entry in way.obstacles for device in entry.devices))
        )
        self._short: dict[str, str] = {}
        unnamed = list(everything)
        for parts in (1, 2):
            uses = collections.Counter(_tail(name, parts) for name in everything)
            self._short.update((name, _tail(name, parts)) for name in unnamed if uses[_tail(name, parts)] == 1)
            unnamed = [name for name in unnamed if name not in self._short]

    def of(self, device: str) -> str:
        """A device, by its full name."""
        return self._short.get(device, device)

    def several(self, devices: Sequence[str], *, count: int | None = None) -> str:
        """Some devices; ``count`` is how many there are if not all are given."""
        total = len(devices) if count is None else count
        shown = [self.of(device) for device in devices[:MAX_SHOWN]]
        more = total - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")


def listed(items: Iterable[str]) -> str:
    """Texts with commas between them."""
    return ", ".join(items)


def _tail(name: str, parts: int) -> str:
    # Drivers and pools may have slashes in their names, devices have none.
    return "/".join(name.split("/")[-parts:])
