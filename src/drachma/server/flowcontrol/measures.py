"""Measures of flow control, under upstream's names."""

from collections.abc import Iterator
from typing import Any, Final

from prometheus_client import core
from prometheus_client import registry as collecting

from drachma.server.flowcontrol import seats
from drachma.server.histogram import Histogram

_PREFIX: Final = "apiserver_flowcontrol_"
_BOTH: Final = ("priority_level", "flow_schema")
_SECONDS: Final = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0)


class Counts:
    """Counts of the requests of one flow schema in one level."""

    __slots__ = ("at_once", "durations", "refused", "waited", "waited_in_vain", "waiting")

    def __init__(self) -> None:
        self.waiting = 0
        self.at_once = 0
        """Requests that did not have to wait."""
        self.refused: Final[dict[str, int]] = {}
        self.waited: Final = Histogram(_SECONDS)
        self.waited_in_vain: Final = Histogram(_SECONDS)
        self.durations: Final = Histogram(_SECONDS)

    @property
    def dispatched(self) -> int:
        """Requests that have got a seat."""
        return self.at_once + self.waited.count

    @property
    def executing(self) -> int:
        """Requests that have a seat now."""
        return self.dispatched - self.durations.count

    def refuse(self, reason: str, waited: float) -> None:
        """Count a request that got no seat."""
        self.refused[reason] = self.refused.get(reason, 0) + 1
        self.waited_in_vain.observe(waited)


class Measures(collecting.Collector):
    """All counts, by level and flow schema."""

    def __init__(self, all_seats: seats.Seats[Any]) -> None:
        self._seats: Final = all_seats
        self._counts: Final[dict[tuple[str, str], Counts]] = {}

    def counts_of(self, level: str, schema: str) -> Counts:
        """Return the counts of a schema in a level."""
        key = (level, schema)
        return self._counts.get(key) or self._counts.setdefault(key, Counts())

    def collect(self) -> Iterator[core.Metric]:
        """Yield the measures in the form of Prometheus."""
        rejected = core.CounterMetricFamily(
            f"{_PREFIX}rejected_requests", "Requests rejected by flow control.", labels=(*_BOTH, "reason")
        )
        dispatched = core.CounterMetricFamily(
            f"{_PREFIX}dispatched_requests", "Requests that flow control let run.", labels=_BOTH
        )
        queued = core.GaugeMetricFamily(
            f"{_PREFIX}current_inqueue_requests", "Requests that wait for a seat.", labels=_BOTH
        )
        executing = core.GaugeMetricFamily(
            f"{_PREFIX}current_executing_requests", "Requests that have a seat.", labels=_BOTH
        )
        waited = core.HistogramMetricFamily(
            f"{_PREFIX}request_wait_duration_seconds",
            "Time that requests waited for a seat.",
            labels=(*_BOTH, "execute"),
        )
        durations = core.HistogramMetricFamily(
            f"{_PREFIX}request_execution_seconds", "Time that requests had a seat.", labels=_BOTH
        )
        for labels, counts in self._counts.items():
            for reason, count in counts.refused.items():
                rejected.add_metric((*labels, reason), count)
            dispatched.add_metric(labels, counts.dispatched)
            queued.add_metric(labels, counts.waiting)
            executing.add_metric(labels, counts.executing)
            buckets = [(bound, number + counts.at_once) for bound, number in counts.waited.buckets()]
            waited.add_metric((*labels, "true"), buckets, counts.waited.sum)
            if counts.refused:
                waited.add_metric((*labels, "false"), counts.waited_in_vain.buckets(), counts.waited_in_vain.sum)
            durations.add_metric(labels, counts.durations.buckets(), counts.durations.sum)
        yield from (rejected, dispatched, queued, executing, waited, durations)
        yield from self._limits()

    def _limits(self) -> Iterator[core.Metric]:
        nominal = core.GaugeMetricFamily(
            f"{_PREFIX}nominal_limit_seats", "Nominal seats of a level.", labels=("priority_level",)
        )
        lower = core.GaugeMetricFamily(
            f"{_PREFIX}lower_limit_seats", "Seats that a level does not lend.", labels=("priority_level",)
        )
        upper = core.GaugeMetricFamily(
            f"{_PREFIX}upper_limit_seats", "Seats that a level may have with borrowed ones.", labels=("priority_level",)
        )
        occupied = core.GaugeMetricFamily(
            f"{_PREFIX}current_executing_seats", "Seats that are taken.", labels=("priority_level",)
        )
        for name, level in self._seats.levels.items():
            if not level.spec.is_exempt:
                nominal.add_metric((name,), level.nominal)
                lower.add_metric((name,), level.kept)
                upper.add_metric((name,), level.most)
            occupied.add_metric((name,), level.executing)
        yield from (nominal, lower, upper, occupied)
