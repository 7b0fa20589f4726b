"""Agenda: planned ends of pods and planned changes of the cluster, in the order of their times."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable
from typing import Final, TypeAlias

from drachma.simulate.timeline.events import ClusterChange
from drachma.simulate.timeline.jobrun import Resident, RunningPod

Item: TypeAlias = RunningPod | Resident | ClusterChange
"""Pod that ends, or change of the cluster."""

NEVER: Final = float("inf")


class Agenda:
    """Items with their times. Items of one time are in the order in which they were planned."""

    def __init__(self) -> None:
        self._entries: Final[list[tuple[float, int, Item]]] = []
        self._numbers: Final = itertools.count()

    def plan(self, time: float, item: Item) -> None:
        """Add an item."""
        heapq.heappush(self._entries, (time, next(self._numbers), item))

    def plan_all(self, entries: Iterable[tuple[float, Item]]) -> None:
        """Add many items. It costs less than to add them one by one."""
        self._entries.extend((time, next(self._numbers), item) for time, item in entries)
        heapq.heapify(self._entries)

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def next_time(self) -> float:
        """Time of the next item; infinite if there is none."""
        return self._entries[0][0] if self._entries else NEVER

    def pop(self) -> Item:
        """Remove and return the next item."""
        return heapq.heappop(self._entries)[2]

    def entries(self) -> list[tuple[float, Item]]:
        """Return all items with their times, in their order."""
        return [(time, item) for time, _, item in sorted(self._entries, key=lambda entry: entry[:2])]
