"""The metrics that all controllers have in common, under upstream's names: how their queues do.

One for each registry; each queue takes its own part by its name.
"""

from collections.abc import Callable
from typing import Final

import msgspec
import prometheus_client

from drachma.runtime import measures

_BUCKETS: Final = tuple(10.0**exponent for exponent in range(-8, 2))


class QueueMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics of one queue."""

    adds: measures.Counter
    retries: measures.Counter
    waiting: measures.Histogram
    working: measures.Histogram
    depth: prometheus_client.Gauge
    unfinished: prometheus_client.Gauge
    longest: prometheus_client.Gauge

    def watch(self, waiting: Callable[[], int], running: Callable[[], list[float]]) -> None:
        """Asks, whenever somebody looks, how many keys wait, and for how many seconds each was worked on so far."""
        self.depth.set_function(waiting)
        self.unfinished.set_function(lambda: sum(running()))
        self.longest.set_function(lambda: max(running(), default=0.0))


class Metrics:
    """The metrics of all queues in one registry, which has nothing under these names yet."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        labels = ("name",)
        self._depth: Final = prometheus_client.Gauge(
            "workqueue_depth", "Keys that wait in the queue.", labels, registry=registry
        )
        self._adds: Final = measures.Counters("workqueue_adds_total", "Keys added to the queue.", labels, into=registry)
        self._retries: Final = measures.Counters(
            "workqueue_retries_total", "Keys added again because work on them failed.", labels, into=registry
        )
        self._waiting: Final = measures.Histograms(
            "workqueue_queue_duration_seconds",
            "How long a key waits in the queue before work on it begins.",
            labels,
            bounds=_BUCKETS,
            into=registry,
        )
        self._working: Final = measures.Histograms(
            "workqueue_work_duration_seconds",
            "How long work on a key takes.",
            labels,
            bounds=_BUCKETS,
            into=registry,
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
            adds=self._adds.of(queue),
            retries=self._retries.of(queue),
            waiting=self._waiting.of(queue),
            working=self._working.of(queue),
            unfinished=self._unfinished.labels(queue),
            longest=self._longest.labels(queue),
        )
