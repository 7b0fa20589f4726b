"""What queueing counts, under Kueue's names: cycles of admission, and what becomes of workloads.

Most of it is read off the conditions of workloads as they change, whoever wrote them. What is the case now is looked
up when somebody asks, see ``queuelevels``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

import prometheus_client

from drachma.queueing import conditions
from drachma.queueing.admission.admitter import CycleReport
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import workloadstate
from drachma.runtime import measures

ROLE: Final = "replica_role"
"""The last label of every measure: whether others wait for the lease of this process."""

_ATTEMPT_BUCKETS: Final = prometheus_client.Histogram.DEFAULT_BUCKETS
_BUCKETS: Final = (1, *(2.5 * 2**power for power in range(13)))
_LONG_BUCKETS: Final = (1, *(2.5 * 2**power for power in range(15)))

_FamilyT = TypeVar("_FamilyT", measures.Counters, measures.Histograms)
_Labels = tuple[str, ...]


class _Pair(Generic[_FamilyT]):
    """One measure by cluster queue, and the same by local queue."""

    def __init__(self, make: Callable[[str, Sequence[str]], _FamilyT], name: str, *labels: str) -> None:
        self.by_cluster_queue: _FamilyT = make(f"kueue_{name}", ("cluster_queue", *labels, ROLE))
        self.by_local_queue: _FamilyT = make(f"kueue_local_queue_{name}", ("name", "namespace", *labels, ROLE))


class QueueMeasures:
    """``role`` is how the process works: ``leader``, or ``standalone`` where nobody else would.

    ``measures_local`` says whether the local queue of a workload is measured by itself.
    """

    def __init__(
        self,
        into: prometheus_client.CollectorRegistry,
        *,
        role: str,
        measures_local: Callable[[workload.Workload], bool],
    ) -> None:
        def counters(about: str) -> Callable[[str, Sequence[str]], measures.Counters]:
            return lambda name, labels: measures.Counters(name, about, labels, into=into)

        def histograms(
            about: str, bounds: Sequence[float] = _BUCKETS
        ) -> Callable[[str, Sequence[str]], measures.Histograms]:
            return lambda name, labels: measures.Histograms(name, about, labels, bounds=bounds, into=into)

        self._role: Final = role
        self._measures_local: Final = measures_local
        self._attempts: Final = counters("Cycles of admission.")("kueue_admission_attempts", ("result", ROLE))
        self._durations: Final = histograms("How long cycles of admission took.", _ATTEMPT_BUCKETS)(
            "kueue_admission_attempt_duration_seconds", ("result", ROLE)
        )
        self._reserved: Final = _Pair(
            counters("Workloads that quota was reserved for."), "quota_reserved_workloads", "priority_class"
        )
        self._reservation_waits: Final = _Pair(
            histograms("How long workloads waited for quota."), "quota_reserved_wait_time_seconds", "priority_class"
        )
        self._admitted: Final = _Pair(counters("Workloads that were admitted."), "admitted_workloads", "priority_class")
        self._admission_waits: Final = _Pair(
            histograms("How long workloads waited until they were admitted.", _LONG_BUCKETS),
            "admission_wait_time_seconds",
            "priority_class",
        )
        self._check_waits: Final = _Pair(
            histograms("How long workloads with quota waited until they were admitted."),
            "admission_checks_wait_time_seconds",
            "priority_class",
        )
        self._ready_waits: Final = _Pair(
            histograms("How long workloads waited until their pods were ready."),
            "ready_wait_time_seconds",
            "priority_class",
        )
        self._starts: Final = _Pair(
            histograms("How long workloads that were admitted waited until their pods were ready."),
            "admitted_until_ready_wait_time_seconds",
            "priority_class",
        )
        self._finished: Final = _Pair(counters("Workloads that are over."), "finished_workloads", "priority_class")
        self._runs: Final = _Pair(
            histograms("How long workloads that are over ran.", _LONG_BUCKETS),
            "execution_time_seconds",
            "priority_class",
        )
        self._evicted: Final = _Pair(
            counters("Workloads that were evicted."),
            "evicted_workloads",
            "reason",
            "underlying_cause",
            "priority_class",
        )
        self._evicted_once: Final = counters("Workloads that were evicted for a reason for the first time.")(
            "kueue_evicted_workloads_once",
            ("cluster_queue", "reason", "underlying_cause", "priority_class", ROLE),
        )
        self._spoilt: Final = histograms("How long pods of workloads that were evicted had been ready.")(
            "kueue_pods_ready_to_evicted_time_seconds", ("cluster_queue", "reason", "underlying_cause", ROLE)
        )
        self._stops: Final = histograms("How long workloads that were evicted kept their quota.")(
            "kueue_workload_eviction_latency_seconds", ("cluster_queue", "reason", ROLE)
        )
        self._preempted: Final = counters("Workloads that were preempted.")(
            "kueue_preempted_workloads", ("preempting_cluster_queue", "reason", ROLE)
        )
        self._replaced: Final = counters("Workloads that larger ones of their jobs took the place of.")(
            "kueue_replaced_workload_slices", ("cluster_queue", ROLE)
        )

    def attempt(self, seconds: float, *, is_success: bool) -> None:
        """A cycle has ended."""
        result = "success" if is_success else "inadmissible"
        self._attempts.of(result, self._role).inc()
        self._durations.of(result, self._role).observe(seconds)

    def displaced(self, report: CycleReport, victim: workload.Workload) -> None:
        """A workload has to go for another one, or is over because a larger one of its job takes its place."""
        key = workloadstate.key(victim)
        for entry in report.entries:
            if entry.replaced is not None and entry.replaced.info.key == key:
                self._replaced.of(entry.info.cluster_queue, self._role).inc()
            elif any(target.info.key == key for target in entry.victims):
                condition = conditions.find(victim.status.conditions, conditions.PREEMPTED)
                reason = condition.reason if condition is not None else ""
                self._preempted.of(entry.info.cluster_queue, reason, self._role).inc()

    def changed(self, old: workload.Workload, new: workload.Workload) -> None:
        """A workload is another than it was."""
        if old.status is new.status or old.status == new.status:
            return
        admission = new.status.admission or old.status.admission
        queue = admission.cluster_queue if admission is not None else ""
        for kind, note in (
            (conditions.QUOTA_RESERVED, self._on_reserved),
            (conditions.ADMITTED, self._on_admitted),
            (conditions.PODS_READY, self._on_ready),
            (conditions.FINISHED, self._on_finished),
        ):
            since = _since(new, kind)
            if since is not None and _since(old, kind) is None:
                note(queue, new, since)
        self._note_evictions(queue, old, new)

    def _on_reserved(self, queue: str, of: workload.Workload, since: datetime) -> None:
        for counter in self._both(self._reserved, queue, of):
            counter.inc()
        self._observe(self._reservation_waits, queue, of, workloadstate.queued_at(of), since)

    def _on_admitted(self, queue: str, of: workload.Workload, since: datetime) -> None:
        for counter in self._both(self._admitted, queue, of):
            counter.inc()
        self._observe(self._admission_waits, queue, of, workloadstate.queued_at(of), since)
        self._observe(self._check_waits, queue, of, _since(of, conditions.QUOTA_RESERVED), since)

    def _on_ready(self, queue: str, of: workload.Workload, since: datetime) -> None:
        admitted = _since(of, conditions.ADMITTED)
        if admitted is not None:
            self._observe(self._ready_waits, queue, of, workloadstate.queued_at(of), since)
            self._observe(self._starts, queue, of, admitted, since)

    def _on_finished(self, queue: str, of: workload.Workload, since: datetime) -> None:
        for counter in self._both(self._finished, queue, of):
            counter.inc()
        admitted = _since(of, conditions.ADMITTED)
        if admitted is not None:
            past = of.status.accumulated_past_execution_time_seconds or 0
            for histogram in self._both(self._runs, queue, of):
                histogram.observe(past + _seconds(admitted, since))

    def _note_evictions(self, queue: str, old: workload.Workload, new: workload.Workload) -> None:
        for reason, cause, count in _evictions(old, new):
            for counter in self._both(self._evicted, queue, new, reason, cause):
                counter.inc()
            if count == 1:
                self._evicted_once.of(queue, reason, cause, _priority_class(new), self._role).inc()
            ready, evicted = _since(old, conditions.PODS_READY), _since(new, conditions.EVICTED)
            if ready is not None and evicted is not None:
                self._spoilt.of(queue, reason, cause, self._role).observe(_seconds(ready, evicted))
        evicted, back = (
            _since(new, conditions.EVICTED),
            conditions.find(new.status.conditions, conditions.QUOTA_RESERVED),
        )
        if (
            evicted is not None
            and workloadstate.has_reservation(old)
            and back is not None
            and back.status != "True"
            and back.last_transition_time is not None
        ):
            condition = conditions.find(new.status.conditions, conditions.EVICTED)
            assert condition is not None, "it is true"
            self._stops.of(queue, condition.reason, self._role).observe(_seconds(evicted, back.last_transition_time))

    def _observe(
        self,
        which: _Pair[measures.Histograms],
        queue: str,
        of: workload.Workload,
        start: datetime | None,
        end: datetime,
    ) -> None:
        if start is not None:
            for histogram in self._both(which, queue, of):
                histogram.observe(_seconds(start, end))

    def _both(self, which: _Pair[_FamilyT], queue: str, of: workload.Workload, *labels: str) -> Iterator[Any]:
        """The measure of a workload's cluster queue, and that of its local queue where that is measured."""
        rest: _Labels = (*labels, _priority_class(of), self._role)
        yield which.by_cluster_queue.of(queue, *rest)
        if self._measures_local(of):
            yield which.by_local_queue.of(of.spec.queue_name, of.metadata.namespace, *rest)


def _since(of: workload.Workload, kind: str) -> datetime | None:
    """Since when a condition holds; None if it does not."""
    condition = conditions.find(of.status.conditions, kind)
    return condition.last_transition_time if condition is not None and condition.status == "True" else None


def _evictions(old: workload.Workload, new: workload.Workload) -> Iterator[tuple[str, str, int]]:
    """Reasons and causes of evictions that were not counted before, and how often there were such by now."""
    before = {(each.reason, each.underlying_cause): each.count for each in _counts(old)}
    for each in _counts(new):
        if each.count > before.get((each.reason, each.underlying_cause), 0):
            yield each.reason, each.underlying_cause, each.count


def _counts(of: workload.Workload) -> tuple[workload.EvictionCount, ...]:
    return of.status.scheduling_stats.evictions if of.status.scheduling_stats is not None else ()


def _priority_class(of: workload.Workload) -> str:
    return of.spec.priority_class_ref.name if of.spec.priority_class_ref is not None else ""


def _seconds(start: datetime, end: datetime) -> float:
    return max(0.0, (end - start).total_seconds())
