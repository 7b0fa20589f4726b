"""The metrics that all controllers have in common, under upstream's names: how their queues do.

One for each registry; each queue takes its own part by its name.
"""

from collections.abc import Callable
from typing import Final

import msgspec
import prometheus_client

_BUCKETS: Final = tuple(10.0**exponent for exponent in range(-8, 2))


class QueueMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics of one queue."""

    depth: prometheus_client.Gauge
    adds: prometheus_client.Counter
    retries: prometheus_client.Counter
    waiting: prometheus_client.Histogram
    working: prometheus_client.Histogram
    unfinished: prometheus_client.Gauge
    longest: prometheus_client.Gauge

    def watch(self, running: Callable[[], list[float]]) -> None:
        """Asks for the seconds that each piece of work has taken so far whenever somebody looks."""
        self.unfinished.set_function(lambda: sum(running()))
        self.longest.set_function(lambda: max(running(), default=0.0))


class Metrics:
    """The metrics of all queues in one registry, which has nothing under these names yet."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        labels = ("name",)
        self._depth: Final = prometheus_client.Gauge(
            "workqueue_depth", "Keys that wait in the queue.", labels, registry=registry
        )
        self._adds: Final = prometheus_client.Counter(
            "workqueue_adds_total", "Keys added to the queue.", labels, registry=registry
        )
        self._retries: Final = prometheus_client.Counter(
            "workqueue_retries_total", "Keys added again because work on them failed.", labels, registry=registry
        )
        self._waiting: Final = prometheus_client.Histogram(
            "workqueue_queue_duration_seconds",
            "How long a key waits in the queue before work on it begins.",
            labels,
            buckets=_BUCKETS,
            registry=registry,
        )
        self._working: Final = prometheus_client.Histogram(
            "workqueue_work_duration_seconds",
            "How long work on a key takes.",
            labels,
            buckets=_BUCKETS,
            registry=registry,
        )
        self._unfinished: Final = prometheus_client.Gauge(
            "workqueue_unfinished_work_seconds",
            "Seconds of work that is under way; when it only grows, something is stuck.",
            labels,
            registry=registry,
        )
        self._longest: Final = prometheus_client.Gauge(
            "workqueue_longest_running_processor_seconds",
            "For how many seconds the oldest work under way has been going on.",
            labels,
            registry=registry,
        )

    def of(self, queue: str) -> QueueMetrics:
        """The part of the queue of that name."""
        return QueueMetrics(
            depth=self._depth.labels(queue),
            adds=self._adds.labels(queue),
            retries=self._retries.labels(queue),
            waiting=self._waiting.labels(queue),
            working=self._working.labels(queue),
            unfinished=self._unfinished.labels(queue),
            longest=self._longest.labels(queue),
        )
