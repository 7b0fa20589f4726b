"""What queueing measures, under Kueue's names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

import prometheus_client
from prometheus_client import core, registry

from drachma.queueing import conditions, dominantshare, workloadstate
from drachma.queueing.admitter import Admitter, CycleReport
from drachma.queueing.kinds import localqueue, workload
from drachma.queueing.queuestatus import Readiness
from drachma.queueing.workloadevents import Event
from drachma.runtime import measures

_ATTEMPT_BUCKETS: Final = prometheus_client.Histogram.DEFAULT_BUCKETS
_WAIT_BUCKETS: Final = (1, 2.5, 5, *(10 * 2**power for power in range(11)))
_EVICTED: Final = "EvictedDueTo"


class QueueMeasures:
    """Counts what happens; how many wait and hold quota is looked up when somebody asks."""

    def __init__(self, into: prometheus_client.CollectorRegistry) -> None:
        def counters(name: str, about: str, *labels: str) -> measures.Counters:
            return measures.Counters(name, about, labels, into=into)

        self._attempts: Final = counters("kueue_admission_attempts", "Cycles of admission.", "result")
        self._durations: Final = measures.Histograms(
            "kueue_admission_attempt_duration_seconds",
            "How long cycles of admission took.",
            ("result",),
            bounds=_ATTEMPT_BUCKETS,
            into=into,
        )
        self._reserved: Final = counters(
            "kueue_quota_reserved_workloads", "Workloads that quota was reserved for.", "cluster_queue"
        )
        self._admitted: Final = counters("kueue_admitted_workloads", "Workloads that were admitted.", "cluster_queue")
        self._waits: Final = measures.Histograms(
            "kueue_admission_wait_time_seconds",
            "How long workloads waited until they were admitted.",
            ("cluster_queue",),
            bounds=_WAIT_BUCKETS,
            into=into,
        )
        self._evicted: Final = counters(
            "kueue_evicted_workloads", "Workloads that were evicted.", "cluster_queue", "reason"
        )
        self._preempted: Final = counters(
            "kueue_preempted_workloads", "Workloads that were preempted.", "preempting_cluster_queue", "reason"
        )
        self._replaced: Final = counters(
            "kueue_replaced_workload_slices",
            "Workloads that larger ones of their jobs took the place of.",
            "cluster_queue",
        )
        self.levels: Final = Levels(into)

    def attempt(self, seconds: float, *, is_success: bool) -> None:
        """A cycle has ended."""
        result = "success" if is_success else "inadmissible"
        self._attempts.of(result).inc()
        self._durations.of(result).observe(seconds)

    def reserved(self, cluster_queue: str, after: workload.Workload, now: datetime) -> None:
        """Quota was reserved for a workload, which may be admitted by that."""
        self._reserved.of(cluster_queue).inc()
        if workloadstate.is_admitted(after):
            self._admit(cluster_queue, after, now)

    def _admit(self, cluster_queue: str, after: workload.Workload, now: datetime) -> None:
        self._admitted.of(cluster_queue).inc()
        queued = workloadstate.queued_at(after)
        if queued is not None:
            self._waits.of(cluster_queue).observe((now - queued).total_seconds())

    def displaced(self, report: CycleReport, victim: workload.Workload) -> None:
        """A workload has to go for another one, or is over because a larger one of its job takes its place."""
        admission = victim.status.admission
        queue = admission.cluster_queue if admission is not None else ""
        key = workloadstate.key(victim)
        if any(each.replaced is not None and each.replaced.info.key == key for each in report.entries):
            self._replaced.of(queue).inc()
            return
        self._evicted.of(queue, "Preempted").inc()
        condition = conditions.find(victim.status.conditions, conditions.PREEMPTED)
        preemptors = (
            each.info.cluster_queue for each in report.entries if any(target.info.key == key for target in each.victims)
        )
        self._preempted.of(next(preemptors, ""), condition.reason if condition is not None else "").inc()

    def told(self, about: workload.Workload, told: Event) -> None:
        """An event about a workload says that it was admitted or evicted."""
        admission = about.status.admission
        queue = admission.cluster_queue if admission is not None else ""
        if told.reason == conditions.ADMITTED:
            self._admitted.of(queue).inc()
        elif told.reason.startswith(_EVICTED):
            self._evicted.of(queue, told.reason.removeprefix(_EVICTED)).inc()


class Levels(registry.Collector):
    """How many workloads wait and hold quota now, and which queues are active."""

    def __init__(self, into: prometheus_client.CollectorRegistry) -> None:
        self.admitter: Admitter | None = None
        self.readiness: Mapping[str, Readiness] = {}
        self.measured_local_queues: Callable[[], Iterable[localqueue.LocalQueue]] = tuple
        into.register(self)

    def describe(self) -> list[core.Metric]:
        return list(self._families())

    def _families(self) -> tuple[core.GaugeMetricFamily, ...]:
        return (
            core.GaugeMetricFamily(
                "kueue_pending_workloads", "Workloads that wait.", labels=("cluster_queue", "status")
            ),
            core.GaugeMetricFamily(
                "kueue_reserving_active_workloads", "Workloads that hold quota.", labels=("cluster_queue",)
            ),
            core.GaugeMetricFamily(
                "kueue_admitted_active_workloads", "Workloads that are admitted.", labels=("cluster_queue",)
            ),
            core.GaugeMetricFamily(
                "kueue_cluster_queue_status", "Whether queues admit.", labels=("cluster_queue", "status")
            ),
            core.GaugeMetricFamily(
                "kueue_cluster_queue_weighted_share",
                "How much more than their own queues use, where they share fairly; NaN: of weight zero, and more.",
                labels=("cluster_queue", "cohort"),
            ),
            core.GaugeMetricFamily(
                "kueue_cohort_weighted_share", "How much more than their own cohorts use.", labels=("cohort",)
            ),
            core.GaugeMetricFamily(
                "kueue_local_queue_admission_fair_sharing_usage",
                "What local queues have used in the past, by the weights of resources and their own.",
                labels=("name", "namespace", "cluster_queue"),
            ),
        )

    def collect(self) -> list[core.Metric]:
        pending, reserving, admitted, states, shares, cohort_shares, past_usage = families = self._families()
        if self.admitter is None:
            return list(families)
        for name, queue in self.admitter.queues.items():
            pending.add_metric((name, "active"), len(queue.active))
            pending.add_metric((name, "inadmissible"), len(queue.parked))
        for state in self.admitter.snapshot.states:
            holders = state.workloads.values()
            reserving.add_metric((state.name,), len(holders))
            admitted.add_metric((state.name,), sum(workloadstate.is_admitted(each.workload) for each in holders))
        if self.admitter.settings.fair_sharing:
            tree = self.admitter.snapshot.tree
            for name, node in tree.queues.items():
                weighted = dominantshare.share(node).weighted
                cohort = node.parent.name if node.parent is not None else ""
                shares.add_metric((name, cohort), math.nan if math.isinf(weighted) else weighted)
            for name, node in tree.cohorts.items():
                cohort_shares.add_metric((name,), dominantshare.share(node).weighted)
        if (ledger := self.admitter.ledger) is not None:
            for local in self.measured_local_queues():
                place, name = local.metadata.namespace, local.metadata.name
                past_usage.add_metric((name, place, local.spec.cluster_queue), ledger.usage((place, name)))
        for name, each in self.readiness.items():
            state_of = "active" if each.is_active else "terminating" if each.reason == "Terminating" else "pending"
            for status in ("pending", "active", "terminating"):
                states.add_metric((name, status), float(status == state_of))
        return list(families)
