"""Metrics of work queues that all controllers have, under upstream's names.

There is one per registry; each queue takes its own part by its name.
"""

from collections.abc import Callable
from typing import Final

import msgspec
import prometheus_client

from drachma.runtime import measures

_BUCKETS: Final = tuple(10.0**exponent for exponent in range(-8, 2))


class QueueMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics of one queue."""

    adds: measures.Counter
    retries: measures.Counter
    waiting: measures.Histogram
    working: measures.Histogram
    depth: prometheus_client.Gauge
    unfinished: prometheus_client.Gauge
    longest: prometheus_client.Gauge

    def watch(self, count_waiting: Callable[[], int], running_seconds: Callable[[], list[float]]) -> None:
        """Export, at each scrape, the number of waiting keys and the seconds of work on each key under way."""
        self.depth.set_function(count_waiting)
        self.unfinished.set_function(lambda: sum(running_seconds()))
        self.longest.set_function(lambda: max(running_seconds(), default=0.0))


class Metrics:
    """Metrics of all queues in one registry, which has nothing under these names yet."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        labels = ("name",)
        self._depth: Final = prometheus_client.Gauge(
            "workqueue_depth", "Keys that wait in the queue.", labels, registry=registry
        )
        self._adds: Final = measures.Counters(
            "workqueue_adds_total", "Keys added to the queue.", labels, registry=registry
        )
        self._retries: Final = measures.Counters(
            "workqueue_retries_total", "Keys added again because work on them failed.", labels, registry=registry
        )
        self._waiting: Final = measures.Histograms(
            "workqueue_queue_duration_seconds",
            "Time that a key waits in the queue.",
            labels,
            bounds=_BUCKETS,
            registry=registry,
        )
        self._working: Final = measures.Histograms(
            "workqueue_work_duration_seconds",
            "Time that work on a key takes.",
            labels,
            bounds=_BUCKETS,
            registry=registry,
        )
        self._unfinished: Final = prometheus_client.Gauge(
            "workqueue_unfinished_work_seconds",
            "Seconds of work under way; if it only grows, a worker is stuck.",
            labels,
            registry=registry,
        )
        self._longest: Final = prometheus_client.Gauge(
            "workqueue_longest_running_processor_seconds",
            "Seconds since the oldest work under way began.",
            labels,
            registry=registry,
        )

    def of(self, queue: str) -> QueueMetrics:
        """Return the metrics of a queue."""
        return QueueMetrics(
            depth=self._depth.labels(queue),
            adds=self._adds.of(queue),
            retries=self._retries.of(queue),
            waiting=self._waiting.of(queue),
            working=self._working.of(queue),
            unfinished=self._unfinished.labels(queue),
            longest=self._longest.labels(queue),
        )
