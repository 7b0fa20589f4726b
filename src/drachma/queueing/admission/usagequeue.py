"""The workloads that wait for a cluster queue which takes turns by past usage (Kueue's AdmissionFairSharing).

Workloads of the local queue that has used least come first, before anything else is compared; then the order is that of
:class:`pendingqueue.PendingQueue`. Usage changes all the time, and with it the place of all workloads
of a local queue at once. So each local queue has its own heap, and the heaps' heads are compared when somebody asks.
"""

from __future__ import annotations

import heapq

from drachma.queueing.admission import usageledger
from drachma.queueing.admission.pendingqueue import PendingQueue
from drachma.queueing.admission.usageledger import LocalQueueKey, UsageLedger
from drachma.queueing.kinds import clusterqueue
from drachma.queueing.workloads.settings import DEFAULT_SETTINGS, Settings
from drachma.queueing.workloads.workloadinfo import Order, WorkloadInfo


class UsageQueue(PendingQueue):
    """What waits for one cluster queue, in the order of its local queues' usage."""

    def __init__(
        self, of: clusterqueue.ClusterQueue, *, ledger: UsageLedger, settings: Settings = DEFAULT_SETTINGS
    ) -> None:
        super().__init__(of, settings=settings)
        self._ledger = ledger
        self._heaps: dict[LocalQueueKey, list[tuple[Order, str, int]]] = {}

    def _push(self, info: WorkloadInfo) -> None:
        self._count += 1
        self._active[info.key] = info
        self._entries[info.key] = self._count
        heap = self._heaps.setdefault(usageledger.local_queue(info.workload), [])
        heapq.heappush(heap, (info.order, info.key, self._count))

    def _head(self) -> str | None:
        heads = [info for place in tuple(self._heaps) if (info := self._head_of(place)) is not None]
        preemptor = self._active.get(self._preemptor.key) if self._preemptor is not None else None
        if preemptor is not None:
            heads.append(preemptor)
        return min(heads, key=self._order).key if heads else None

    def _head_of(self, place: LocalQueueKey) -> WorkloadInfo | None:
        heap = self._heaps[place]
        while heap:
            _, key, entry = heap[0]
            if self._entries.get(key) == entry:
                return self._active[key]
            heapq.heappop(heap)
        del self._heaps[place]
        return None

    def _order(self, info: WorkloadInfo) -> tuple[object, ...]:
        return (self._ledger.usage(usageledger.local_queue(info.workload)), *super()._order(info))
