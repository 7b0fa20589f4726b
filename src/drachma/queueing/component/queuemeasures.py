"""Counters and histograms under Kueue's names: admission cycles, and transitions of workloads.

Most of them follow the conditions of workloads as they change, no matter which component wrote them. Gauges are
computed on collection, see ``queuelevels``.
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
"""Last label of every metric: whether other replicas wait for the lease of this process."""

_ATTEMPT_BUCKETS: Final = prometheus_client.Histogram.DEFAULT_BUCKETS
_BUCKETS: Final = (1, *(2.5 * 2**power for power in range(13)))
_LONG_BUCKETS: Final = (1, *(2.5 * 2**power for power in range(15)))

_FamilyT = TypeVar("_FamilyT", measures.Counters, measures.Histograms)
_Labels = tuple[str, ...]


class _Pair(Generic[_FamilyT]):
    """A metric by cluster queue, and the same metric by local queue."""

    def __init__(self, make: Callable[[str, Sequence[str]], _FamilyT], name: str, *labels: str) -> None:
        self.by_cluster_queue: _FamilyT = make(f"kueue_{name}", ("cluster_queue", *labels, ROLE))
        self.by_local_queue: _FamilyT = make(f"kueue_local_queue_{name}", ("name", "namespace", *labels, ROLE))


class QueueMeasures:
    """All counters and histograms. ``role`` is ``leader``, or ``standalone`` without leader election.

    ``measures_local`` returns True for workloads whose local queue has metrics of its own.
    """

    def __init__(
        self,
        registry: prometheus_client.CollectorRegistry,
        *,
        role: str,
        measures_local: Callable[[workload.Workload], bool],
    ) -> None:
        def counters(help_text: str) -> Callable[[str, Sequence[str]], measures.Counters]:
            return lambda name, labels: measures.Counters(name, help_text, labels, registry=registry)

        def histograms(
            help_text: str, bounds: Sequence[float] = _BUCKETS
        ) -> Callable[[str, Sequence[str]], measures.Histograms]:
            return lambda name, labels: measures.Histograms(name, help_text, labels, bounds=bounds, registry=registry)

        self._role: Final = role
        self._measures_local: Final = measures_local
        self._attempts: Final = counters("Number of admission cycles.")("kueue_admission_attempts", ("result", ROLE))
        self._durations: Final = histograms("Duration of admission cycles.", _ATTEMPT_BUCKETS)(
            "kueue_admission_attempt_duration_seconds", ("result", ROLE)
        )
        self._reserved: Final = _Pair(
            counters("Number of quota reservations."), "quota_reserved_workloads", "priority_class"
        )
        self._reservation_waits: Final = _Pair(
            histograms("Time from queueing to quota reservation."), "quota_reserved_wait_time_seconds", "priority_class"
        )
        self._admitted: Final = _Pair(counters("Number of admissions."), "admitted_workloads", "priority_class")
        self._admission_waits: Final = _Pair(
            histograms("Time from queueing to admission.", _LONG_BUCKETS),
            "admission_wait_time_seconds",
            "priority_class",
        )
        self._check_waits: Final = _Pair(
            histograms("Time from quota reservation to admission."),
            "admission_checks_wait_time_seconds",
            "priority_class",
        )
        self._ready_waits: Final = _Pair(
            histograms("Time from queueing to ready pods."),
            "ready_wait_time_seconds",
            "priority_class",
        )
        self._starts: Final = _Pair(
            histograms("Time from admission to ready pods."),
            "admitted_until_ready_wait_time_seconds",
            "priority_class",
        )
        self._finished: Final = _Pair(counters("Number of finished workloads."), "finished_workloads", "priority_class")
        self._runs: Final = _Pair(
            histograms("Run time of finished workloads.", _LONG_BUCKETS),
            "execution_time_seconds",
            "priority_class",
        )
        self._evicted: Final = _Pair(
            counters("Number of evictions."),
            "evicted_workloads",
            "reason",
            "underlying_cause",
            "priority_class",
        )
        self._evicted_once: Final = counters("Number of workloads evicted for a reason at least once.")(
            "kueue_evicted_workloads_once",
            ("cluster_queue", "reason", "underlying_cause", "priority_class", ROLE),
        )
        self._ready_before_eviction: Final = histograms("Time from ready pods to eviction.")(
            "kueue_pods_ready_to_evicted_time_seconds", ("cluster_queue", "reason", "underlying_cause", ROLE)
        )
        self._stops: Final = histograms("Time from eviction to the release of quota.")(
            "kueue_workload_eviction_latency_seconds", ("cluster_queue", "reason", ROLE)
        )
        self._preempted: Final = counters("Number of preemptions.")(
            "kueue_preempted_workloads", ("preempting_cluster_queue", "reason", ROLE)
        )
        self._replaced: Final = counters("Number of workload slices replaced by larger ones.")(
            "kueue_replaced_workload_slices", ("cluster_queue", ROLE)
        )

    def count_cycle(self, seconds: float, *, is_success: bool) -> None:
        """Count a cycle."""
        result = "success" if is_success else "inadmissible"
        self._attempts.of(result, self._role).inc()
        self._durations.of(result, self._role).observe(seconds)

    def count_displaced(self, report: CycleReport, victim: workload.Workload) -> None:
        """Count a workload that was preempted, or replaced by a larger slice of its job."""
        key = workloadstate.key(victim)
        for entry in report.entries:
            if entry.replaced is not None and entry.replaced.info.key == key:
                self._replaced.of(entry.info.cluster_queue, self._role).inc()
            elif any(target.info.key == key for target in entry.victims):
                condition = conditions.find(victim.status.conditions, conditions.PREEMPTED)
                reason = condition.reason if condition is not None else ""
                self._preempted.of(entry.info.cluster_queue, reason, self._role).inc()

    def count_transitions(self, old: workload.Workload, new: workload.Workload) -> None:
        """Count the transitions between two versions of a workload."""
        if old.status is new.status or old.status == new.status:
            return
        admission = new.status.admission or old.status.admission
        queue = admission.cluster_queue if admission is not None else ""
        for kind, note in (
            (conditions.QUOTA_RESERVED, self._handle_reserved),
            (conditions.ADMITTED, self._handle_admitted),
            (conditions.PODS_READY, self._handle_ready),
            (conditions.FINISHED, self._handle_finished),
        ):
            since = _since(new, kind)
            if since is not None and _since(old, kind) is None:
                note(queue, new, since)
        self._note_evictions(queue, old, new)

    def _handle_reserved(self, queue: str, wl: workload.Workload, since: datetime) -> None:
        for counter in self._both(self._reserved, queue, wl):
            counter.inc()
        self._observe(self._reservation_waits, queue, wl, workloadstate.queued_at(wl), since)

    def _handle_admitted(self, queue: str, wl: workload.Workload, since: datetime) -> None:
        for counter in self._both(self._admitted, queue, wl):
            counter.inc()
        self._observe(self._admission_waits, queue, wl, workloadstate.queued_at(wl), since)
        self._observe(self._check_waits, queue, wl, _since(wl, conditions.QUOTA_RESERVED), since)

    def _handle_ready(self, queue: str, wl: workload.Workload, since: datetime) -> None:
        admitted = _since(wl, conditions.ADMITTED)
        if admitted is not None:
            self._observe(self._ready_waits, queue, wl, workloadstate.queued_at(wl), since)
            self._observe(self._starts, queue, wl, admitted, since)

    def _handle_finished(self, queue: str, wl: workload.Workload, since: datetime) -> None:
        for counter in self._both(self._finished, queue, wl):
            counter.inc()
        admitted = _since(wl, conditions.ADMITTED)
        if admitted is not None:
            past_seconds = wl.status.accumulated_past_execution_time_seconds or 0
            for histogram in self._both(self._runs, queue, wl):
                histogram.observe(past_seconds + _seconds(admitted, since))

    def _note_evictions(self, queue: str, old: workload.Workload, new: workload.Workload) -> None:
        for reason, cause, count in _evictions(old, new):
            for counter in self._both(self._evicted, queue, new, reason, cause):
                counter.inc()
            if count == 1:
                self._evicted_once.of(queue, reason, cause, _priority_class(new), self._role).inc()
            ready, evicted = _since(old, conditions.PODS_READY), _since(new, conditions.EVICTED)
            if ready is not None and evicted is not None:
                self._ready_before_eviction.of(queue, reason, cause, self._role).observe(_seconds(ready, evicted))
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
        wl: workload.Workload,
        start: datetime | None,
        end: datetime,
    ) -> None:
        if start is not None:
            for histogram in self._both(which, queue, wl):
                histogram.observe(_seconds(start, end))

    def _both(self, which: _Pair[_FamilyT], queue: str, wl: workload.Workload, *labels: str) -> Iterator[Any]:
        """Return the metric of a workload's cluster queue, and that of its local queue if it has metrics."""
        more_labels: _Labels = (*labels, _priority_class(wl), self._role)
        yield which.by_cluster_queue.of(queue, *more_labels)
        if self._measures_local(wl):
            yield which.by_local_queue.of(wl.spec.queue_name, wl.metadata.namespace, *more_labels)


def _since(wl: workload.Workload, kind: str) -> datetime | None:
    """Return the transition time of a true condition, or None."""
    condition = conditions.find(wl.status.conditions, kind)
    return condition.last_transition_time if condition is not None and condition.status == "True" else None


def _evictions(old: workload.Workload, new: workload.Workload) -> Iterator[tuple[str, str, int]]:
    """Return reasons and causes of evictions that are not counted yet, with their current counts."""
    before = {(each.reason, each.underlying_cause): each.count for each in _counts(old)}
    for each in _counts(new):
        if each.count > before.get((each.reason, each.underlying_cause), 0):
            yield each.reason, each.underlying_cause, each.count


def _counts(wl: workload.Workload) -> tuple[workload.EvictionCount, ...]:
    return wl.status.scheduling_stats.evictions if wl.status.scheduling_stats is not None else ()


def _priority_class(wl: workload.Workload) -> str:
    return wl.spec.priority_class_ref.name if wl.spec.priority_class_ref is not None else ""


def _seconds(start: datetime, end: datetime) -> float:
    return max(0.0, (end - start).total_seconds())
