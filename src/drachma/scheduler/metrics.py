"""Metrics of the scheduler, under upstream's names, in a registry that is passed in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import prometheus_client
from prometheus_client import core, registry

from drachma.runtime import measures
from drachma.scheduler import queue
from drachma.scheduler.snapshot import Snapshot

_QUEUES: Final = (queue.Where.ACTIVE, queue.Where.BACKOFF, queue.Where.PARKED, queue.Where.GATED)

SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
ERROR: Final = "error"


def _exponential(start: float, factor: float, *, count: int) -> tuple[float, ...]:
    return tuple(start * factor**place for place in range(count))


class Metrics:
    """What is counted and timed."""

    def __init__(
        self,
        where: prometheus_client.CollectorRegistry,
        *,
        profile: str,
    ) -> None:
        self._profile: Final = profile
        self._registry: Final = where
        attempts = measures.Counters(
            "scheduler_schedule_attempts_total",
            "Number of attempts to schedule pods, by the result.",
            ("result", "profile"),
            into=where,
        )
        durations = measures.Histograms(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds, algorithm and binding.",
            ("result", "profile"),
            bounds=_exponential(0.001, 2, count=15),
            into=where,
        )
        results = (SCHEDULED, UNSCHEDULABLE, ERROR)
        self._attempts: Final = {result: attempts.of(result, profile) for result in results}
        self._durations: Final = {result: durations.of(result, profile) for result in results}
        self.algorithm: Final = measures.Histograms(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds.",
            bounds=_exponential(0.001, 2, count=15),
            into=where,
        ).of()
        self._points: Final = measures.Histograms(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            ("extension_point", "status", "profile"),
            bounds=_exponential(0.0001, 2, count=12),
            into=where,
        )
        self._incoming: Final = measures.Counters(
            "scheduler_queue_incoming_pods_total",
            "Number of pods added to scheduling queues by event and queue type.",
            ("queue", "event"),
            into=where,
        )
        self._sli: Final = measures.Histograms(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Latency from a pod's first attempt until it is bound, by the number of attempts.",
            ("attempts",),
            bounds=_exponential(0.01, 2, count=20),
            into=where,
        )
        self._attempts_needed: Final = measures.Histograms(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            bounds=_exponential(1, 2, count=5),
            into=where,
        ).of()
        self.after_flush: Final = measures.Counters(
            "scheduler_pod_scheduled_after_flush_total",
            "Number of pods that were scheduled after they had waited for so long that they were tried again.",
            into=where,
        ).of()
        self.preemption_attempts: Final = measures.Counters(
            "scheduler_preemption_attempts_total", "Total preemption attempts in the cluster till now.", into=where
        ).of()
        self.preemption_victims: Final = measures.Histograms(
            "scheduler_preemption_victims",
            "Number of selected preemption victims.",
            bounds=_exponential(1, 2, count=7),
            into=where,
        ).of()
        self._workload_preemptions: Final = measures.Counters(
            "scheduler_workload_preemption_attempts_total",
            "Total preemption attempts for groups of pods in the cluster till now.",
            ("result",),
            into=where,
        )
        self.workload_preemption_victims: Final = measures.Histograms(
            "scheduler_workload_preemption_victims",
            "Number of pods that were selected for preemption by groups of pods.",
            bounds=_exponential(1, 2, count=11),
            into=where,
        ).of()
        self._binding_conditions: Final = measures.Counters(
            "scheduler_dra_bindingconditions_allocations_total",
            "Number of allocations using devices with BindingConditions, by driver and outcome.",
            ("profile", "driver", "status"),
            into=where,
        )
        self._binding_waits: Final = measures.Histograms(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "Time in seconds spent waiting for BindingConditions during PreBind.",
            ("profile", "driver", "status"),
            bounds=_exponential(0.1, 2, count=14),
            into=where,
        )
        self.claim_creates: Final = prometheus_client.Counter(
            "dynamic_resource_allocation_resourceclaim_creates_total",
            "Number of ResourceClaims creation requests, by status, admin access and owner.",
            ("status", "admin_access", "owner_api_group", "owner_api_kind"),
            registry=where,
        )

    def watch(self, waiting: queue.Queue, snapshot: Snapshot) -> None:
        """Report the sizes of a queue and a snapshot whenever somebody asks."""
        self._registry.register(_Sizes(waiting, snapshot, self._profile))

    def attempt(self, result: str, seconds: float) -> None:
        """An attempt to schedule a pod came to an end."""
        self._attempts[result].inc()
        self._durations[result].observe(seconds)

    def point(self, name: str, seconds: float, *, status: str = "Success") -> None:
        """All plugins of an extension point ran."""
        self._points.of(name, status, self._profile).observe(seconds)

    def incoming(self, queue: str, event: str) -> None:
        """A pod came into a part of the queue."""
        self._incoming.of(queue, event).inc()

    def bound(self, attempts: int, seconds: float) -> None:
        """A pod was bound, so many seconds after its first attempt."""
        self._attempts_needed.observe(attempts)
        self._sli.of(str(attempts) if attempts < 15 else "15+").observe(seconds)

    def workload_preemption(self, result: str) -> None:
        """Room was looked for that a group of pods could be given by evicting others."""
        self._workload_preemptions.of(result).inc()

    def binding_conditions(self, drivers: Iterable[str], seconds: float, *, status: str) -> None:
        """A wait for devices to become ready came to an end."""
        for driver in drivers:
            self._binding_waits.of(self._profile, driver, status).observe(seconds)
            self._binding_conditions.of(self._profile, driver, status).inc()

    def claim_created(self, status: str) -> None:
        """A claim for extended resources was made, or that failed."""
        self.claim_creates.labels(status, "false", "", "Pod").inc()


class _Sizes(registry.Collector):
    """Gauges that are read when they are asked for."""

    def __init__(self, waiting: queue.Queue, snapshot: Snapshot, profile: str) -> None:
        self._queue: Final = waiting
        self._snapshot: Final = snapshot
        self._profile: Final = profile

    def collect(self) -> Iterable[core.Metric]:
        pending = core.GaugeMetricFamily(
            "scheduler_pending_pods", "Number of pending pods, by the queue type.", labels=("queue",)
        )
        for where in _QUEUES:
            pending.add_metric((where.value,), self._queue.size(where))
        yield pending
        rejected = core.GaugeMetricFamily(
            "scheduler_unschedulable_pods",
            "The number of unschedulable pods broken down by plugin name.",
            labels=("plugin", "profile"),
        )
        for plugin, count in self._queue.rejected_by().items():
            rejected.add_metric((plugin, self._profile), count)
        yield rejected
        sizes = core.GaugeMetricFamily(
            "scheduler_cache_size", "Number of nodes, pods and assumed pods in the cache.", labels=("type",)
        )
        for kind, count in self._snapshot.nodes.sizes().items():
            sizes.add_metric((kind,), count)
        yield sizes
