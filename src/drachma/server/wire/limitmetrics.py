"""Measures of what limits look at: connections, bodies, answers on their way, and frames of events."""

from collections.abc import Iterator
from typing import Final

from prometheus_client import core
from prometheus_client import registry as collecting

from drachma.listening import budget as budgets
from drachma.server.wire import bodies, frames, outgoing


class LimitMetrics(collecting.Collector):
    """Reads the numbers when they are asked for."""

    def __init__(self, held: bodies.Bodies, sent: outgoing.Outgoing, shared: frames.Frames) -> None:
        self._bodies: Final = held
        self._outgoing: Final = sent
        self._frames: Final = shared

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
