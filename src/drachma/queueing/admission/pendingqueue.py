"""The workloads that wait for one cluster queue: those whose turn will come, and those parked until something changes.

Those whose turn will come are in a heap: a workload that waits for its victims first (the sticky one, unless order is
strict), then by priority, the time of queueing, and uid. Parked are those that were tried and did not fit, with all
others of their shape, which stay in the heap for that (:mod:`shapeheap`); and those whose backoff has not passed.
Whoever was popped is in flight until it is put back or forgotten.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from drachma.queueing import conditions
from drachma.queueing.admission.shapeheap import ShapeHeap
from drachma.queueing.kinds import clusterqueue, workload
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.settings import DEFAULT_SETTINGS, Settings
from drachma.queueing.workloads.workloadinfo import NO_SHAPE, WorkloadInfo


class RequeueReason(enum.StrEnum):
    """Why a workload comes back from a cycle."""

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


def is_backoff_over(of: workload.Workload, now: datetime) -> bool:
    """Whether a workload may be tried: its time has come, and nobody keeps it out."""
    if conditions.is_false(of.status.conditions, conditions.REQUEUED):
        return False
    state = of.status.requeue_state
    return state is None or state.requeue_at is None or now >= state.requeue_at


class _Preemptor(NamedTuple):
    """The workload that others are being preempted for."""

    key: str
    generation: int
    is_sticky: bool


class PendingQueue:
    """What waits for one cluster queue."""

    def __init__(self, of: clusterqueue.ClusterQueue, *, settings: Settings = DEFAULT_SETTINGS) -> None:
        self.name = of.metadata.name
        self.is_strict = of.spec.queueing_strategy == clusterqueue.STRICT_FIFO
        self._settings = settings
        self._heaps: dict[object, ShapeHeap] = {}
        """Who is neither parked alone nor in flight, by group; shapes that are hopeless are closed in all of them."""
        self._parked: dict[str, WorkloadInfo] = {}
        """Who is parked alone, and not with all of its shape."""
        self._in_flight: str | None = None
        self._preemptor: _Preemptor | None = None
        self._pops = 0
        self._retried_at = -1
        self._hopeless: dict[bytes, str] = {}

    @property
    def active(self) -> tuple[str, ...]:
        """Keys of the workloads whose turn will come, in that order."""
        ready = [info for heap in self._heaps.values() for info in heap if heap.is_open(info.key)]
        return tuple(info.key for info in sorted(ready, key=self._order))

    @property
    def parked(self) -> tuple[str, ...]:
        """Keys of the workloads that wait for a change, sorted."""
        return tuple(sorted((*self._parked, *(info.key for info in self._parked_alike()))))

    def __len__(self) -> int:
        return sum(map(len, self._heaps.values())) + len(self._parked)

    def __contains__(self, key: object) -> bool:
        return key in self._parked or key == self._in_flight or any(key in heap for heap in self._heaps.values())

    def waiting(self) -> Iterator[WorkloadInfo]:
        """All that wait, in the order of the queue."""
        queued = (info for heap in self._heaps.values() for info in heap)
        yield from sorted((*queued, *self._parked.values()), key=self._order)

    def get(self, key: str) -> WorkloadInfo | None:
        """A workload that waits."""
        heap = self._find(key)
        return heap[key] if heap is not None else self._parked.get(key)

    def _find(self, key: str) -> ShapeHeap | None:
        return next((heap for heap in self._heaps.values() if key in heap), None)

    def _parked_alike(self) -> Iterator[WorkloadInfo]:
        """Who is parked with all of its shape."""
        return (info for heap in self._heaps.values() for info in heap if not heap.is_open(info.key))

    def is_preemptor(self, info: WorkloadInfo) -> bool:
        """Whether others are being preempted for a workload, as it is now."""
        preemptor = self._preemptor
        generation = info.workload.metadata.generation
        return preemptor is not None and (preemptor.key, preemptor.generation) == (info.key, generation)

    def is_sticky(self, key: str) -> bool:
        """Whether a workload keeps the head of the queue while it waits for its victims."""
        return self._preemptor is not None and self._preemptor.is_sticky and self._preemptor.key == key

    def parked_reason(self, key: str) -> str | None:
        """Why a workload was parked without being tried; None if it was not."""
        heap = self._find(key)
        if heap is not None and heap.is_open(key):
            return None
        info = heap[key] if heap is not None else self._parked.get(key)
        return None if info is None else self._hopeless.get(info.shape)

    def pop(self) -> WorkloadInfo | None:
        """The workload whose turn it is; it is in flight then."""
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
        """Add a workload, or take note that it changed. One that is in flight is placed when it comes back."""
        key = info.key
        if key == self._in_flight:
            return
        heap = self._find(key)
        if heap is None or not heap.is_open(key):
            before = heap[key] if heap is not None else self._parked.get(key)
            if before is not None and not _may_help(before, info):
                if heap is not None:
                    heap.restate(info)
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
        """Put a workload back that a cycle did not admit; whether it was not there already.

        Where it cannot fit, all others of its shape are parked with it.
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
            self._park_alike(info.shape, quota_reason or "PendingEvaluation")
        return True

    def _is_compared(self, info: WorkloadInfo) -> bool:
        """Whether others of its shape are judged as it is."""
        return not self.is_strict and info.shape != NO_SHAPE

    def _park_alike(self, shape: bytes, reason: str) -> None:
        self._hopeless[shape] = reason
        for heap in self._heaps.values():
            heap.close(shape)
            # Who came back while its shape was hopeless has been tried by itself.
            for info in heap.of_shape(NO_SHAPE):
                if info.shape == shape:
                    heap.put(info, shape)

    def retry(self, now: datetime, *, takes: Callable[[str], bool] = lambda _: True) -> int:
        """Something changed: parked workloads get another chance, if their backoff has passed and the queue takes them.

        ``takes`` says from which namespaces. Returns how many.
        """
        self._retried_at = self._pops
        self._hopeless.clear()
        namespaces = {info.workload.metadata.namespace for info in self._parked.values()}
        namespaces.update(*(heap.namespaces for heap in self._heaps.values()))
        unwelcome = {name for name in namespaces if not takes(name)}
        again = [
            info
            for info in self._parked.values()
            if info.workload.metadata.namespace not in unwelcome and is_backoff_over(info.workload, now)
        ]
        if unwelcome:
            for info in tuple(self._parked_alike()):
                if info.workload.metadata.namespace in unwelcome:
                    self._parked[info.key] = self._remove(info.key)
        count = len(again) + sum(heap.open_all() for heap in self._heaps.values())
        for info in again:
            self._push(info)
        return count

    def take(self, other: PendingQueue) -> None:
        """Takes over all that wait in another queue; each gets a chance."""
        for info in other.waiting():
            self._push(info)

    def delete(self, key: str) -> None:
        """Forget a workload."""
        self._drop(key)
        if self._in_flight == key:
            self._in_flight = None
        if self._preemptor is not None and self._preemptor.key == key:
            self._preemptor = None

    def _push(self, info: WorkloadInfo) -> None:
        """Its turn will come, even where others of its shape are parked."""
        is_apart = not self._is_compared(info) or info.shape in self._hopeless
        self._place(info, NO_SHAPE if is_apart else info.shape)

    def _place(self, info: WorkloadInfo, shape: bytes) -> None:
        """It waits in the heap of its group, and nowhere else."""
        self._drop(info.key)
        group = self._group(info)
        heap = self._heaps.get(group)
        if heap is None:
            heap = self._heaps[group] = ShapeHeap()
            for each in self._hopeless:
                heap.close(each)
        heap.put(info, shape)

    def _group(self, info: WorkloadInfo) -> object:
        """Workloads of one group have one order for good."""
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
    """Whether a parked workload changed so that it might be admitted, or in what orders it."""
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
