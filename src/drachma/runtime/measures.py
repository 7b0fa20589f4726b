"""Counters and histograms that are cheap to keep and become metrics only when they are scraped.

Components measure every object that they handle, so measuring must cost little. Everything runs in one event loop, so a
number is enough, without locks. Names, labels and buckets are those of ``prometheus_client``. Scheduler and controllers
use them; families are registered like any other collector.
"""

import bisect
import itertools
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import prometheus_client
from prometheus_client import core, registry, utils


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self) -> None:
        """Add one."""
        self.value += 1


class Histogram:
    """Number of observations up to each bound, and their sum."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Add an observation."""
        self._counts[bisect.bisect_left(self._bounds, value)] += 1
        self._sum += value

    def include(self, other: "Histogram") -> None:
        """Add the observations of another histogram with the same bounds."""
        self._counts = [own + more for own, more in zip(self._counts, other._counts, strict=True)]
        self._sum += other._sum

    def add_to(self, family: core.HistogramMetricFamily, labels: Sequence[str]) -> None:
        """Add the samples to a family."""
        totals = itertools.accumulate(self._counts)
        bounds = [*map(utils.floatToGoString, self._bounds), "+Inf"]
        family.add_metric(labels, buckets=list(zip(bounds, totals, strict=True)), sum_value=self._sum)


MeasureT = TypeVar("MeasureT", Counter, Histogram)
"""A counter, or a histogram."""


class Counters(registry.Collector):
    """Counters of one name, by the values of their labels."""

    def __init__(
        self, name: str, help_text: str, labels: Sequence[str] = (), *, registry: prometheus_client.CollectorRegistry
    ) -> None:
        self._name: Final = name
        self._help: Final = help_text
        self._labels: Final = labels
        self._children: Final[dict[tuple[str, ...], Counter]] = {}
        registry.register(self)

    def of(self, *values: str) -> Counter:
        """Return the counter with these label values, which is exported from now on."""
        if values not in self._children:
            self._children[values] = Counter()
        return self._children[values]

    def describe(self) -> Iterable[core.Metric]:
        return (core.CounterMetricFamily(self._name, self._help, labels=self._labels),)

    def collect(self) -> Iterable[core.Metric]:
        family = core.CounterMetricFamily(self._name, self._help, labels=self._labels)
        for values, counter in self._children.items():
            family.add_metric(values, counter.value)
        return (family,)


class Histograms(registry.Collector):
    """Histograms of one name, by the values of their labels."""

    def __init__(
        self,
        name: str,
        help_text: str,
        labels: Sequence[str] = (),
        *,
        bounds: Sequence[float],
        registry: prometheus_client.CollectorRegistry,
    ) -> None:
        self._name: Final = name
        self._help: Final = help_text
        self._labels: Final = labels
        self._bounds: Final = tuple(bounds)
        self._children: Final[dict[tuple[str, ...], Histogram]] = {}
        registry.register(self)

    def of(self, *values: str) -> Histogram:
        """Return the histogram with these label values, which is exported from now on."""
        if values not in self._children:
            self._children[values] = Histogram(self._bounds)
        return self._children[values]

    def describe(self) -> Iterable[core.Metric]:
        return (core.HistogramMetricFamily(self._name, self._help, labels=self._labels),)

    def collect(self) -> Iterable[core.Metric]:
        family = core.HistogramMetricFamily(self._name, self._help, labels=self._labels)
        for values, histogram in self._children.items():
            histogram.add_to(family, values)
        return (family,)
