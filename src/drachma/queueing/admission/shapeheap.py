"""A heap of workloads in which all of one shape can be closed at once, and opened again.

Where one workload does not fit, no other of its shape does, until something changes. Thousands may wait in few shapes,
and something changes all the time. So each shape has a heap of its own, and to close or open it costs nothing for the
workloads in it. The first of every open shape is in one more heap, whose first is the head.

What is removed stays in the heaps until it comes up, or until there is more of that than of workloads.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from drachma.queueing.workloads.workloadinfo import Order, WorkloadInfo

_SPARE: Final = 64
"""How much that is removed a heap may always have."""


class _Entry(NamedTuple):
    number: int
    shape: bytes


class ShapeHeap:
    """Workloads by their order."""

    def __init__(self) -> None:
        self._infos: dict[str, WorkloadInfo] = {}
        self._entries: dict[str, _Entry] = {}
        self._sizes: Counter[bytes] = Counter()
        self._shapes: dict[bytes, list[tuple[Order, str, int]]] = {}
        self._firsts: list[tuple[Order, str, int, bytes]] = []
        self._closed: set[bytes] = set()
        self._number = 0
        self.namespaces: Counter[str] = Counter()
        """Where the workloads are, and how many."""

    def __len__(self) -> int:
        return len(self._infos)

    def __contains__(self, key: object) -> bool:
        return key in self._infos

    def __iter__(self) -> Iterator[WorkloadInfo]:
        """All workloads, in no particular order."""
        return iter(self._infos.values())

    def __getitem__(self, key: str) -> WorkloadInfo:
        return self._infos[key]

    def is_open(self, key: str) -> bool:
        """Whether the shape is open that a workload was put into."""
        return self._entries[key].shape not in self._closed

    def of_shape(self, shape: bytes) -> list[WorkloadInfo]:
        """All workloads that were put into a shape."""
        if not self._sizes[shape]:
            return []
        return [self._infos[key] for key, entry in self._entries.items() if entry.shape == shape]

    def put(self, info: WorkloadInfo, shape: bytes) -> None:
        """Adds a workload, or takes it for what it is now."""
        if info.key in self._infos:
            self.remove(info.key)
        self._number += 1
        item = (info.order, info.key, self._number)
        self._infos[info.key] = info
        self._entries[info.key] = _Entry(self._number, shape)
        self._sizes[shape] += 1
        self.namespaces[info.workload.metadata.namespace] += 1
        heap = self._shapes.setdefault(shape, [])
        heapq.heappush(heap, item)
        if len(heap) > 2 * self._sizes[shape] + _SPARE:
            heap[:] = [each for each in heap if self._is_there(each, shape)]
            heapq.heapify(heap)
        if heap[0] is item and shape not in self._closed:
            heapq.heappush(self._firsts, (*item, shape))

    def restate(self, info: WorkloadInfo) -> None:
        """Takes a workload for what it is now, where nothing changed that its place depends on."""
        self._infos[info.key] = info

    def remove(self, key: str) -> WorkloadInfo:
        """Takes a workload out."""
        self._sizes[self._entries.pop(key).shape] -= 1
        info = self._infos.pop(key)
        namespace = info.workload.metadata.namespace
        self.namespaces[namespace] -= 1
        if not self.namespaces[namespace]:
            del self.namespaces[namespace]
        return info

    def head(self) -> WorkloadInfo | None:
        """The first workload of all open shapes."""
        while self._firsts:
            order, key, number, shape = self._firsts[0]
            is_open = shape not in self._closed
            if is_open and self._is_there((order, key, number), shape):
                return self._infos[key]
            heapq.heappop(self._firsts)
            if is_open:
                self._bring_up(shape)
        return None

    def close(self, shape: bytes) -> None:
        """No workload of a shape is the head from now on."""
        self._closed.add(shape)

    def open_all(self) -> int:
        """Opens all shapes; how many workloads are in those that were closed."""
        closed, self._closed = self._closed, set()
        for shape in closed:
            self._bring_up(shape)
        return sum(self._sizes[shape] for shape in closed)

    def _bring_up(self, shape: bytes) -> None:
        """Has the first workload of a shape among the firsts."""
        heap = self._shapes.get(shape, [])
        while heap and not self._is_there(heap[0], shape):
            heapq.heappop(heap)
        if heap:
            heapq.heappush(self._firsts, (*heap[0], shape))
        else:
            self._shapes.pop(shape, None)

    def _is_there(self, item: tuple[Order, str, int], shape: bytes) -> bool:
        return self._entries.get(item[1]) == (item[2], shape)
