"""Metrics of limited resources: connections, bodies, unsent answers, shared frames, and caches."""

from collections.abc import Iterator
from typing import Final

from prometheus_client import core
from prometheus_client import registry as collecting

from drachma.bounds import memory
from drachma.listening import budget as budgets
from drachma.server.wire import bodies, frames, outgoing


class LimitMetrics(collecting.Collector):
    """Collector that reads the numbers on demand."""

    def __init__(self, held_bodies: bodies.Bodies, answers: outgoing.Outgoing, shared_frames: frames.Frames) -> None:
        self._bodies: Final = held_bodies
        self._outgoing: Final = answers
        self._frames: Final = shared_frames

    def collect(self) -> Iterator[core.Metric]:
        """Yield the measures in the form of Prometheus."""
        budget = budgets.PROCESS
        for name, text, value in (
            ("drachma_open_connections", "Connections to all ports of the process.", len(budget)),
            ("drachma_request_body_bytes", "Bytes of request bodies held in memory.", self._bodies.total),
            ("drachma_outgoing_bytes", "Bytes of large answers that are being sent.", self._outgoing.total),
            ("drachma_watch_frame_bytes", "Bytes of events that watches share.", self._frames.total),
        ):
            yield core.GaugeMetricFamily(name, text, value=value)
        for name, text, value in (
            ("drachma_refused_connections", "Connections refused because there was no room.", budget.refused),
            ("drachma_given_up_connections", "Connections ended to make room for others.", budget.given_up),
            ("drachma_given_up_answers", "Unread answers given up to make room for others.", self._outgoing.given_up),
        ):
            yield core.CounterMetricFamily(name, text, value=value)


class CacheMetrics(collecting.Collector):
    """Collector for the caches of one memory."""

    def __init__(self, caches: memory.Memory = memory.PROCESS) -> None:
        self._caches: Final = caches

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics as the registry asks for them."""
        sizes = core.GaugeMetricFamily("drachma_cache_bytes", "Bytes that a cache holds.", labels=["cache"])
        for name, size in sorted(self._caches.sizes().items()):
            sizes.add_metric([name], size)
        yield sizes
        yield core.GaugeMetricFamily(
            "drachma_cache_limit_bytes", "Bytes that all caches may hold together.", value=self._caches.limit
        )
