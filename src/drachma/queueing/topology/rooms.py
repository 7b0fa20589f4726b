"""Rooms: the resources of leaves, shared by all leaves that have the same.

A cluster has many nodes and few kinds of them, so that most leaves share a room. What fits into a room is then counted
once for all its leaves.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from typing import Final

Item = tuple[str, int]
"""Resource and amount."""


class Room:
    """Resources of a leaf and their usage. It never changes, and equal rooms of a tree are one object."""

    __slots__ = ("__weakref__", "capacity", "usage")

    def __init__(self, capacity: Mapping[str, int], usage: Mapping[str, int]) -> None:
        self.capacity: Final = capacity
        """Allocatable resources without those of pods outside topology aware scheduling."""
        self.usage: Final = usage
        """Resources of admitted workloads, with one ``pods`` for each pod."""

    def free(self, name: str) -> int:
        """Return the free amount of a resource, negative if more is used than there is."""
        return self.capacity.get(name, 0) - self.usage.get(name, 0)


class Rooms:
    """Rooms of a tree. A room is forgotten with its last leaf."""

    def __init__(self) -> None:
        self._rooms: Final[weakref.WeakValueDictionary[tuple[tuple[Item, ...], tuple[Item, ...]], Room]] = (
            weakref.WeakValueDictionary()
        )
        self.empty: Final = self._room({}, {})

    def with_capacity(self, room: Room, items: Iterable[Item], *, sign: int = 1) -> Room:
        """Return the room with more resources, or less if ``sign`` is -1."""
        return self._room(_sum(room.capacity, items, sign), room.usage)

    def with_usage(self, room: Room, items: Iterable[Item], *, times: int = 1) -> Room:
        """Return the room with more usage, which a negative number of ``times`` takes back."""
        return self._room(room.capacity, _sum(room.usage, items, times))

    def _room(self, capacity: Mapping[str, int], usage: Mapping[str, int]) -> Room:
        key = (tuple(sorted(capacity.items())), tuple(sorted(usage.items())))
        room = self._rooms.get(key)
        if room is None:
            room = self._rooms[key] = Room(capacity, usage)
        return room


def _sum(amounts: Mapping[str, int], items: Iterable[Item], times: int) -> Mapping[str, int]:
    """Return the sum of resources. A resource whose sum is 0 is left out, as if it had never been added."""
    total = dict(amounts)
    for name, amount in items:
        total[name] = total.get(name, 0) + amount * times
    return {name: amount for name, amount in total.items() if amount}
