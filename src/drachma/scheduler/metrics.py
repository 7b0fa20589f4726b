"""Metrics of the scheduler, under upstream's names, in a registry that the caller provides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    """Counters and histograms of a scheduler."""

    def __init__(
        self,
        where: prometheus_client.CollectorRegistry,
        *,
        profiles: Sequence[str],
    ) -> None:
        self._registry: Final = where
        attempts = measures.Counters(
            "scheduler_schedule_attempts_total",
            "Number of attempts to schedule pods, by the result.",
            ("result", "profile"),
            registry=where,
        )
        durations = measures.Histograms(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds, algorithm and binding.",
            ("result", "profile"),
            bounds=_exponential(0.001, 2, count=15),
            registry=where,
        )
        results = (SCHEDULED, UNSCHEDULABLE, ERROR)
        pairs = tuple((result, profile) for profile in profiles for result in results)
        self._attempts: Final = {pair: attempts.of(*pair) for pair in pairs}
        self._durations: Final = {pair: durations.of(*pair) for pair in pairs}
        self.algorithm: Final = measures.Histograms(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds.",
            bounds=_exponential(0.001, 2, count=15),
            registry=where,
        ).of()
        self._points: Final = measures.Histograms(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            ("extension_point", "status", "profile"),
            bounds=_exponential(0.0001, 2, count=12),
            registry=where,
        )
        self._incoming: Final = measures.Counters(
            "scheduler_queue_incoming_pods_total",
            "Number of pods added to scheduling queues by event and queue type.",
            ("queue", "event"),
            registry=where,
        )
        self._sli: Final = measures.Histograms(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Latency from a pod's first attempt until it is bound, by the number of attempts.",
            ("attempts",),
            bounds=_exponential(0.01, 2, count=20),
            registry=where,
        )
        self._attempts_needed: Final = measures.Histograms(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            bounds=_exponential(1, 2, count=5),
            registry=where,
        ).of()
        self.after_flush: Final = measures.Counters(
            "scheduler_pod_scheduled_after_flush_total",
            "Number of pods that were scheduled after they had waited for so long that they were tried again.",
            registry=where,
        ).of()
        self.preemption_attempts: Final = measures.Counters(
            "scheduler_preemption_attempts_total", "Total preemption attempts in the cluster till now.", registry=where
        ).of()
        self._preemption_victims: Final = measures.Histograms(
            "scheduler_preemption_victims",
            "Number of selected preemption victims.",
            bounds=_exponential(1, 2, count=7),
            registry=where,
        ).of()
        self._workload_preemptions: Final = measures.Counters(
            "scheduler_workload_preemption_attempts_total",
            "Total preemption attempts for groups of pods in the cluster till now.",
            ("result",),
            registry=where,
        )
        self._workload_preemption_victims: Final = measures.Histograms(
            "scheduler_workload_preemption_victims",
            "Number of pods that were selected for preemption by groups of pods.",
            bounds=_exponential(1, 2, count=11),
            registry=where,
        ).of()
        self._allocated_twice: Final = measures.Counters(
            "drachma_scheduler_devices_allocated_twice_total",
            "Allocations of devices that another scheduler had given out before, own (withdrawn) and others' (undone).",
            ("action",),
            registry=where,
        )
        for action in ("undone", "withdrawn"):
            # Prometheus sees no increase in a series that begins with its first collision.
            self._allocated_twice.of(action)
        self._binding_conditions: Final = measures.Counters(
            "scheduler_dra_bindingconditions_allocations_total",
            "Number of allocations using devices with BindingConditions, by driver and outcome.",
            ("profile", "driver", "status"),
            registry=where,
        )
        self._binding_waits: Final = measures.Histograms(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "Time in seconds spent waiting for BindingConditions during PreBind.",
            ("profile", "driver", "status"),
            bounds=_exponential(0.1, 2, count=14),
            registry=where,
        )
        self.claim_creates: Final = prometheus_client.Counter(
            "dynamic_resource_allocation_resourceclaim_creates_total",
            "Number of ResourceClaims creation requests, by status, admin access and owner.",
            ("status", "admin_access", "owner_api_group", "owner_api_kind"),
            registry=where,
        )

    def watch(self, queue: queue.Queue, snapshot: Snapshot) -> None:
        """Report the sizes of a queue and a snapshot with every scrape."""
        self._registry.register(_Sizes(queue, snapshot))

    def attempt(self, result: str, seconds: float, *, profile: str) -> None:
        """Count an attempt to schedule a pod."""
        self._attempts[result, profile].inc()
        self._durations[result, profile].observe(seconds)

    def point(self, name: str, seconds: float, *, profile: str) -> None:
        """Observe the duration of all plugins of an extension point."""
        self._points.of(name, "Success", profile).observe(seconds)

    def incoming(self, queue: str, event: str) -> None:
        """Count a pod that entered a part of the queue."""
        self._incoming.of(queue, event).inc()

    def bound(self, attempts: int, seconds: float) -> None:
        """Observe a bound pod: the number of its attempts, and the seconds since the first one."""
        self._attempts_needed.observe(attempts)
        self._sli.of(str(attempts) if attempts < 15 else "15+").observe(seconds)

    def preempted(self, preemptor: str, victims: int) -> None:
        """Count the pods that are evicted for a pod, or for a group of pods."""
        histogram = self._preemption_victims if preemptor == "pod" else self._workload_preemption_victims
        histogram.observe(victims)

    def allocated_twice(self, action: str) -> None:
        """Count an allocation that was later than another one of the same devices."""
        self._allocated_twice.of(action).inc()

    def workload_preemption(self, result: str) -> None:
        """Count an attempt to make room for a group of pods by evictions."""
        self._workload_preemptions.of(result).inc()

    def binding_conditions(self, drivers: Iterable[str], seconds: float, *, profile: str, status: str) -> None:
        """Observe the end of a wait for devices to become ready."""
        for driver in drivers:
            self._binding_waits.of(profile, driver, status).observe(seconds)
            self._binding_conditions.of(profile, driver, status).inc()

    def claim_created(self, status: str) -> None:
        """Count the creation of a claim for extended resources, or its failure."""
        self.claim_creates.labels(status, "false", "", "Pod").inc()


class _Sizes(registry.Collector):
    """Gauges that are computed when they are scraped."""

    def __init__(self, queue: queue.Queue, snapshot: Snapshot) -> None:
        self._queue: Final = queue
        self._snapshot: Final = snapshot

    def collect(self) -> Iterable[core.Metric]:
        pending_pods = core.GaugeMetricFamily(
            "scheduler_pending_pods", "Number of pending pods, by the queue type.", labels=("queue",)
        )
        for where in _QUEUES:
            pending_pods.add_metric((where.value,), self._queue.size(where))
        yield pending_pods
        rejected = core.GaugeMetricFamily(
            "scheduler_unschedulable_pods",
            "The number of unschedulable pods broken down by plugin name.",
            labels=("plugin", "profile"),
        )
        for (plugin, profile), count in self._queue.rejected_by().items():
            rejected.add_metric((plugin, profile), count)
        yield rejected
        sizes = core.GaugeMetricFamily(
            "scheduler_cache_size", "Number of nodes, pods and assumed pods in the cache.", labels=("type",)
        )
        for kind, count in self._snapshot.nodes.sizes().items():
            sizes.add_metric((kind,), count)
        yield sizes
