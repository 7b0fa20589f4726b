"""The workloads that wait for one cluster queue: those whose turn will come, and those parked until something changes.

Those whose turn will come are in a heap: a workload that waits for its victims first (the sticky one, unless order is
strict), then by priority, the time of queueing, and uid. Parked are those that were tried and did not fit, and those
whose backoff has not passed. Whoever was popped is in flight until it is put back or forgotten.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from drachma.queueing import conditions
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.kinds import clusterqueue, workload
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.settings import DEFAULT_SETTINGS, Settings
from drachma.queueing.workloads.workloadinfo import NO_SHAPE, Order, WorkloadInfo


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
        self._active: dict[str, WorkloadInfo] = {}
        self._heap: list[tuple[Order, str, int]] = []
        self._entries: dict[str, int] = {}
        self._count = 0
        self._parked: dict[str, WorkloadInfo] = {}
        self._in_flight: str | None = None
        self._preemptor: _Preemptor | None = None
        self._pops = 0
        self._retried_at = -1
        self._hopeless: dict[bytes, str] = {}

    @property
    def active(self) -> tuple[str, ...]:
        """Keys of the workloads whose turn will come, in that order."""
        return tuple(info.key for info in sorted(self._active.values(), key=self._order))

    @property
    def parked(self) -> tuple[str, ...]:
        """Keys of the workloads that wait for a change, sorted."""
        return tuple(sorted(self._parked))

    def __len__(self) -> int:
        return len(self._active) + len(self._parked)

    def __contains__(self, key: object) -> bool:
        return key in self._active or key in self._parked or key == self._in_flight

    def waiting(self) -> Iterator[WorkloadInfo]:
        """All that wait, in the order of the queue."""
        yield from sorted((*self._active.values(), *self._parked.values()), key=self._order)

    def get(self, key: str) -> WorkloadInfo | None:
        """A workload that waits."""
        return self._active.get(key) or self._parked.get(key)

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
        info = self._parked.get(key)
        return None if info is None else self._hopeless.get(info.shape)

    def pop(self) -> WorkloadInfo | None:
        """The workload whose turn it is; it is in flight then."""
        self._pops += 1
        key = self._head()
        self._in_flight = key
        if key is None:
            return None
        return self._remove(key)

    def _head(self) -> str | None:
        preemptor = self._preemptor
        if preemptor is not None and preemptor.is_sticky and preemptor.key in self._active:
            return preemptor.key
        if not self._active:
            self._heap.clear()
        while self._heap:
            _, key, entry = self._heap[0]
            if self._entries.get(key) == entry:
                return key
            heapq.heappop(self._heap)
        return None

    def put(self, info: WorkloadInfo, now: datetime) -> None:
        """Add a workload, or take note that it changed. One that is in flight is placed when it comes back."""
        key = info.key
        if key == self._in_flight:
            return
        before = self._parked.get(key)
        if before is not None:
            if not _may_help(before, info):
                self._parked[key] = info
                return
            del self._parked[key]
        if key not in self._active:
            is_hopeless = not self.is_strict and info.shape != NO_SHAPE and info.shape in self._hopeless
            if is_hopeless or not is_backoff_over(info.workload, now):
                self._parked[key] = info
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
        if is_backoff_over(info.workload, now) and (is_immediate or was_retried or has_flavors):
            before = self._parked.pop(key, None)
            if key in self._active:
                return False
            self._push(before or info)
            return True
        if key in self._parked or key in self._active:
            return False
        self._parked[key] = info
        is_compared = self._settings.gates.on(Gate.SCHEDULING_EQUIVALENCE_HASHING) and info.shape != NO_SHAPE
        if is_compared and reason in _HOPELESS and not self.is_strict:
            self._park_alike(info.shape, quota_reason or "PendingEvaluation")
        return True

    def _park_alike(self, shape: bytes, reason: str) -> None:
        self._hopeless[shape] = reason
        for info in [each for each in self._active.values() if each.shape == shape]:
            self._parked[info.key] = self._remove(info.key)

    def retry(self, now: datetime, *, takes: Callable[[str], bool] = lambda _: True) -> int:
        """Something changed: parked workloads get another chance, if their backoff has passed and the queue takes them.

        ``takes`` says from which namespaces. Returns how many.
        """
        self._retried_at = self._pops
        self._hopeless.clear()
        parked = self._parked.values()
        namespaces = {info.workload.metadata.namespace for info in parked}
        welcome = {name for name in namespaces if takes(name)}
        again = [
            info
            for info in parked
            if info.workload.metadata.namespace in welcome and is_backoff_over(info.workload, now)
        ]
        for info in again:
            del self._parked[info.key]
            self._push(info)
        return len(again)

    def take(self, other: PendingQueue) -> None:
        """Takes over all that wait in another queue; each gets a chance."""
        for info in other.waiting():
            self._push(info)

    def delete(self, key: str) -> None:
        """Forget a workload."""
        self._parked.pop(key, None)
        if key in self._active:
            self._remove(key)
        if self._in_flight == key:
            self._in_flight = None
        if self._preemptor is not None and self._preemptor.key == key:
            self._preemptor = None

    def _push(self, info: WorkloadInfo) -> None:
        self._count += 1
        self._active[info.key] = info
        self._entries[info.key] = self._count
        heapq.heappush(self._heap, (info.order, info.key, self._count))

    def _remove(self, key: str) -> WorkloadInfo:
        del self._entries[key]
        return self._active.pop(key)

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
