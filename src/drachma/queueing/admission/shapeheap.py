"""A heap of workloads in which all workloads of one shape can be closed at once, and opened again.

If one workload does not fit, no other of its shape does until something changes. Thousands of workloads may have few
shapes, and changes are frequent. So each shape has a heap of its own, and closing or opening it costs nothing for the
workloads in it. The first workload of every open shape is in one more heap, whose first is the head.

Removed workloads stay in the heaps until they come up, or until they outnumber the others.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from drachma.queueing.workloads.workloadinfo import Order, WorkloadInfo

_SPARE: Final = 64
"""Number of removed workloads that a heap may always have."""


class _Entry(NamedTuple):
    number: int
    shape: bytes


class ShapeHeap:
    """Workloads in their order."""

    def __init__(self) -> None:
        self._infos: dict[str, WorkloadInfo] = {}
        self._entries: dict[str, _Entry] = {}
        self._sizes: Counter[bytes] = Counter()
        self._shapes: dict[bytes, list[tuple[Order, str, int]]] = {}
        self._firsts: list[tuple[Order, str, int, bytes]] = []
        self._closed: set[bytes] = set()
        self._number = 0
        self.namespaces: Counter[str] = Counter()
        """Number of workloads by namespace."""

    def __len__(self) -> int:
        return len(self._infos)

    def __contains__(self, key: object) -> bool:
        return key in self._infos

    def __iter__(self) -> Iterator[WorkloadInfo]:
        """Yield all workloads, in no particular order."""
        return iter(self._infos.values())

    def __getitem__(self, key: str) -> WorkloadInfo:
        return self._infos[key]

    def is_open(self, key: str) -> bool:
        """Return True if the shape of a workload is open."""
        return self._entries[key].shape not in self._closed

    def shape_members(self, shape: bytes) -> list[WorkloadInfo]:
        """Return all workloads of a shape."""
        if not self._sizes[shape]:
            return []
        return [self._infos[key] for key, entry in self._entries.items() if entry.shape == shape]

    def put(self, info: WorkloadInfo, shape: bytes) -> None:
        """Add a workload, or update it."""
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

    def update(self, info: WorkloadInfo) -> None:
        """Update a workload whose position does not change."""
        self._infos[info.key] = info

    def remove(self, key: str) -> WorkloadInfo:
        """Remove a workload."""
        self._sizes[self._entries.pop(key).shape] -= 1
        info = self._infos.pop(key)
        namespace = info.workload.metadata.namespace
        self.namespaces[namespace] -= 1
        if not self.namespaces[namespace]:
            del self.namespaces[namespace]
        return info

    def head(self) -> WorkloadInfo | None:
        """Return the first workload of all open shapes."""
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
        """Close a shape: none of its workloads is the head."""
        self._closed.add(shape)

    def open_all(self) -> int:
        """Open all shapes, and return the number of workloads in those that were closed."""
        closed, self._closed = self._closed, set()
        for shape in closed:
            self._bring_up(shape)
        return sum(self._sizes[shape] for shape in closed)

    def _bring_up(self, shape: bytes) -> None:
        """Put the first workload of a shape into the heap of first ones."""
        heap = self._shapes.get(shape, [])
        while heap and not self._is_there(heap[0], shape):
            heapq.heappop(heap)
        if heap:
            heapq.heappush(self._firsts, (*heap[0], shape))
        else:
            self._shapes.pop(shape, None)

    def _is_there(self, item: tuple[Order, str, int], shape: bytes) -> bool:
        return self._entries.get(item[1]) == (item[2], shape)
