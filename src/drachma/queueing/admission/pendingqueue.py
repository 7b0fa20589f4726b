"""Pending workloads of one cluster queue: active ones, and those parked until something changes.

Active workloads are in a heap: a workload that waits for its victims comes first (the sticky one, unless the order is
strict), then the order is priority, queueing time and uid. Workloads that were tried and did not fit are parked
together with all others of their shape, which stay in the heap for that (:mod:`shapeheap`); workloads whose backoff is
not over are parked alone. A popped workload is in flight until it is requeued or deleted.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from drachma.queueing import conditions
from drachma.queueing.admission import usageledger
from drachma.queueing.admission.shapeheap import ShapeHeap
from drachma.queueing.admission.usageledger import LocalQueueKey, UsageLedger
from drachma.queueing.kinds import clusterqueue, workload
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.settings import DEFAULT_SETTINGS, Settings
from drachma.queueing.workloads.workloadinfo import NO_SHAPE, WorkloadInfo


class RequeueReason(enum.StrEnum):
    """Reason for which a workload comes back from a cycle."""

    GENERIC = ""
    FAILED_AFTER_NOMINATION = "FailedAfterNomination"
    NAMESPACE_MISMATCH = "NamespaceMismatch"
    PREEMPTION_GATED = "PreemptionGated"
    PENDING_PREEMPTION = "PendingPreemption"
    PENDING_MIGRATION = "PendingMigration"
    PREEMPTION_FAILED = "PreemptionFailed"
    NO_FIT = "NoFit"
    PREEMPTION_NO_CANDIDATES = "PreemptionNoCandidates"


_IMMEDIATE: Final = frozenset(
    {
        RequeueReason.FAILED_AFTER_NOMINATION,
        RequeueReason.PENDING_PREEMPTION,
        RequeueReason.PENDING_MIGRATION,
        RequeueReason.PREEMPTION_FAILED,
    }
)
_STICKY: Final = frozenset({RequeueReason.PENDING_PREEMPTION, RequeueReason.PENDING_MIGRATION})
_HOPELESS: Final = frozenset({RequeueReason.NO_FIT, RequeueReason.PREEMPTION_NO_CANDIDATES})


def is_backoff_over(wl: workload.Workload, now: datetime) -> bool:
    """Return True if a workload may be tried: its backoff is over, and its Requeued condition is not false."""
    if conditions.is_false(wl.status.conditions, conditions.REQUEUED):
        return False
    state = wl.status.requeue_state
    return state is None or state.requeue_at is None or now >= state.requeue_at


class _Preemptor(NamedTuple):
    """The workload for which others are being preempted."""

    key: str
    generation: int
    is_sticky: bool


class PendingQueue:
    """Pending workloads of one cluster queue."""

    def __init__(self, queue: clusterqueue.ClusterQueue, *, settings: Settings = DEFAULT_SETTINGS) -> None:
        self.name = queue.metadata.name
        self.is_strict = queue.spec.queueing_strategy == clusterqueue.STRICT_FIFO
        self._settings = settings
        self._heaps: dict[object, ShapeHeap] = {}
        """Workloads that are neither parked alone nor in flight, by group. Hopeless shapes are closed in all heaps."""
        self._parked: dict[str, WorkloadInfo] = {}
        """Workloads that are parked alone."""
        self._in_flight: str | None = None
        self._preemptor: _Preemptor | None = None
        self._pops = 0
        self._retried_at = -1
        self._hopeless: dict[bytes, str] = {}

    @property
    def active(self) -> tuple[str, ...]:
        """Return the keys of active workloads in their order."""
        ready = [info for heap in self._heaps.values() for info in heap if heap.is_open(info.key)]
        return tuple(info.key for info in sorted(ready, key=self._order))

    @property
    def parked(self) -> tuple[str, ...]:
        """Return the sorted keys of parked workloads."""
        return tuple(sorted((*self._parked, *(info.key for info in self._parked_by_shape()))))

    def __len__(self) -> int:
        return sum(map(len, self._heaps.values())) + len(self._parked)

    def __contains__(self, key: object) -> bool:
        return key in self._parked or key == self._in_flight or any(key in heap for heap in self._heaps.values())

    def waiting(self) -> Iterator[WorkloadInfo]:
        """Yield all pending workloads in the order of the queue."""
        queued = (info for heap in self._heaps.values() for info in heap)
        yield from sorted((*queued, *self._parked.values()), key=self._order)

    def get(self, key: str) -> WorkloadInfo | None:
        """Return a pending workload, if it is here."""
        heap = self._find(key)
        return heap[key] if heap is not None else self._parked.get(key)

    def _find(self, key: str) -> ShapeHeap | None:
        return next((heap for heap in self._heaps.values() if key in heap), None)

    def _parked_by_shape(self) -> Iterator[WorkloadInfo]:
        """Yield workloads that are parked with all others of their shape."""
        return (info for heap in self._heaps.values() for info in heap if not heap.is_open(info.key))

    def is_preemptor(self, info: WorkloadInfo) -> bool:
        """Return True if other workloads are being preempted for this version of a workload."""
        preemptor = self._preemptor
        generation = info.workload.metadata.generation
        return preemptor is not None and (preemptor.key, preemptor.generation) == (info.key, generation)

    def is_sticky(self, key: str) -> bool:
        """Return True if a workload keeps the head of the queue while it waits for its victims."""
        return self._preemptor is not None and self._preemptor.is_sticky and self._preemptor.key == key

    def parked_reason(self, key: str) -> str | None:
        """Return the reason why a workload was parked without being tried, or None if it was tried."""
        heap = self._find(key)
        if heap is not None and heap.is_open(key):
            return None
        info = heap[key] if heap is not None else self._parked.get(key)
        return None if info is None else self._hopeless.get(info.shape)

    def pop(self) -> WorkloadInfo | None:
        """Remove and return the head, which is in flight then."""
        self._pops += 1
        info = self._head()
        self._in_flight = info.key if info is not None else None
        return self._remove(info.key) if info is not None else None

    def _head(self) -> WorkloadInfo | None:
        heads = [info for heap in self._heaps.values() if (info := heap.head()) is not None]
        if self._preemptor is not None:
            heap = self._find(self._preemptor.key)
            if heap is not None and heap.is_open(self._preemptor.key):
                heads.append(heap[self._preemptor.key])
        return min(heads, key=self._order, default=None)

    def put(self, info: WorkloadInfo, now: datetime) -> None:
        """Add or update a workload. A workload in flight is placed when it comes back."""
        key = info.key
        if key == self._in_flight:
            return
        heap = self._find(key)
        if heap is None or not heap.is_open(key):
            before = heap[key] if heap is not None else self._parked.get(key)
            if before is not None and not _may_help(before, info):
                if heap is not None:
                    heap.update(info)
                else:
                    self._parked[key] = info
                return
            if not is_backoff_over(info.workload, now):
                self._drop(key)
                self._parked[key] = info
                return
            if self._is_compared(info) and info.shape in self._hopeless:
                self._place(info, info.shape)
                return
        self._push(info)

    def requeue(self, info: WorkloadInfo, reason: RequeueReason, now: datetime, *, quota_reason: str = "") -> bool:
        """Put back a workload that a cycle did not admit. Return False if it is here already.

        If it cannot fit, all others of its shape are parked with it.
        """
        key = info.key
        if reason in _STICKY:
            self._preemptor = _Preemptor(key, info.workload.metadata.generation, not self.is_strict)
        if self._in_flight == key:
            self._in_flight = None
        is_immediate = reason is not RequeueReason.NAMESPACE_MISMATCH if self.is_strict else reason in _IMMEDIATE
        was_retried = self._retried_at >= self._pops
        has_flavors = info.attempt is not None and info.attempt.has_more
        heap = self._find(key)
        if is_backoff_over(info.workload, now) and (is_immediate or was_retried or has_flavors):
            if heap is not None and heap.is_open(key):
                return False
            self._push(self.get(key) or info)
            return True
        if heap is not None or key in self._parked:
            return False
        self._parked[key] = info
        if self._is_compared(info) and reason in _HOPELESS:
            self._park_shape(info.shape, quota_reason or "PendingEvaluation")
        return True

    def _is_compared(self, info: WorkloadInfo) -> bool:
        """Return True if other workloads of its shape get the same decision."""
        return not self.is_strict and info.shape != NO_SHAPE

    def _park_shape(self, shape: bytes, reason: str) -> None:
        self._hopeless[shape] = reason
        for heap in self._heaps.values():
            heap.close(shape)
            # A workload that came back while its shape was hopeless has been tried by itself.
            for info in heap.shape_members(NO_SHAPE):
                if info.shape == shape:
                    heap.put(info, shape)

    def retry(self, now: datetime, *, takes: Callable[[str], bool] = lambda _: True) -> int:
        """Activate parked workloads whose backoff is over, after something has changed.

        ``takes`` returns True for namespaces that the queue takes. Returns the number of activated workloads.
        """
        self._retried_at = self._pops
        self._hopeless.clear()
        if not self._parked and not self._heaps:
            return 0
        namespaces = {info.workload.metadata.namespace for info in self._parked.values()}
        namespaces.update(*(heap.namespaces for heap in self._heaps.values()))
        unwelcome = {name for name in namespaces if not takes(name)}
        again = [
            info
            for info in self._parked.values()
            if info.workload.metadata.namespace not in unwelcome and is_backoff_over(info.workload, now)
        ]
        if unwelcome:
            for info in tuple(self._parked_by_shape()):
                if info.workload.metadata.namespace in unwelcome:
                    self._parked[info.key] = self._remove(info.key)
        count = len(again) + sum(heap.open_all() for heap in self._heaps.values())
        for info in again:
            self._push(info)
        return count

    def take(self, other: PendingQueue) -> None:
        """Take over all workloads of another queue, as active ones."""
        for info in other.waiting():
            self._push(info)

    def delete(self, key: str) -> None:
        """Delete a workload."""
        self._drop(key)
        if self._in_flight == key:
            self._in_flight = None
        if self._preemptor is not None and self._preemptor.key == key:
            self._preemptor = None

    def _push(self, info: WorkloadInfo) -> None:
        """Activate a workload even if others of its shape are parked."""
        is_apart = not self._is_compared(info) or info.shape in self._hopeless
        self._place(info, NO_SHAPE if is_apart else info.shape)

    def _place(self, info: WorkloadInfo, shape: bytes) -> None:
        """Put a workload into the heap of its group and nowhere else."""
        self._drop(info.key)
        group = self._group(info)
        heap = self._heaps.get(group)
        if heap is None:
            heap = self._heaps[group] = ShapeHeap()
            for each in self._hopeless:
                heap.close(each)
        heap.put(info, shape)

    def _group(self, info: WorkloadInfo) -> object:
        """Return the group of a workload. The order within a group never changes."""
        return None

    def _drop(self, key: str) -> None:
        self._parked.pop(key, None)
        if self._find(key) is not None:
            self._remove(key)

    def _remove(self, key: str) -> WorkloadInfo:
        for group, heap in self._heaps.items():
            if key in heap:
                info = heap.remove(key)
                if not heap:
                    del self._heaps[group]
                return info
        raise KeyError(key)

    def _order(self, info: WorkloadInfo) -> tuple[object, ...]:
        return (not self.is_sticky(info.key), info.order)


def _may_help(before: WorkloadInfo, now: WorkloadInfo) -> bool:
    """Return True if a parked workload has changed in a way that may get it admitted, or that changes its order."""
    old, new = before.workload, now.workload
    return (
        old.metadata.generation != new.metadata.generation
        or old.spec != new.spec
        or before.priority != now.priority
        or old.status.reclaimable_pods != new.status.reclaimable_pods
        or any(
            conditions.find(old.status.conditions, kind) != conditions.find(new.status.conditions, kind)
            for kind in (conditions.EVICTED, conditions.REQUEUED)
        )
        or workloadstate.has_closed_gate(old) != workloadstate.has_closed_gate(new)
        or before.pod_sets != now.pod_sets
    )


class UsageQueue(PendingQueue):
    """Pending workloads of a cluster queue that takes turns by past usage (Kueue's AdmissionFairSharing).

    Workloads of the local queue with the least usage come first; then the order is that of PendingQueue. A change of
    usage moves all workloads of a local queue at once, so each local queue has a heap of its own, and the heads of the
    heaps are compared when a workload is popped.
    """

    def __init__(
        self, queue: clusterqueue.ClusterQueue, *, ledger: UsageLedger, settings: Settings = DEFAULT_SETTINGS
    ) -> None:
        super().__init__(queue, settings=settings)
        self._ledger = ledger

    def _group(self, info: WorkloadInfo) -> LocalQueueKey:
        return usageledger.local_queue(info.workload)

    def _order(self, info: WorkloadInfo) -> tuple[object, ...]:
        return (self._ledger.usage(usageledger.local_queue(info.workload)), *super()._order(info))
