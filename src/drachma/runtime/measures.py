"""Counters and histograms that cost next to nothing to keep, and become metrics only when somebody looks.

Components measure every object that they handle, so measuring must not be what they do most. Everything runs in one
event loop: a number is enough, without locks. Names, labels and buckets come out as those of ``prometheus_client`` do.
Scheduler and controllers use them; families are registered like any other collector.
"""

import bisect
import itertools
from collections.abc import Iterable, Sequence
from typing import Final

import prometheus_client
from prometheus_client import core, registry, utils


class Counter:
    """One number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self) -> None:
        """One more."""
        self.value += 1


class Histogram:
    """How many observations were not above each of some bounds, and what all of them add up to."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """One more observation."""
        self._counts[bisect.bisect_left(self._bounds, value)] += 1
        self._sum += value

    def into(self, family: core.HistogramMetricFamily, labels: Sequence[str]) -> None:
        """Adds its samples to a family."""
        totals = itertools.accumulate(self._counts)
        bounds = [*map(utils.floatToGoString, self._bounds), "+Inf"]
        family.add_metric(labels, buckets=list(zip(bounds, totals, strict=True)), sum_value=self._sum)


class Counters(registry.Collector):
    """The counters of one name, by the values of their labels."""

    def __init__(
        self, name: str, about: str, labels: Sequence[str] = (), *, into: prometheus_client.CollectorRegistry
    ) -> None:
        self._name: Final = name
        self._about: Final = about
        self._labels: Final = labels
        self._children: Final[dict[tuple[str, ...], Counter]] = {}
        into.register(self)

    def of(self, *values: str) -> Counter:
        """The counter with these values of the labels, which shows up from now on."""
        if values not in self._children:
            self._children[values] = Counter()
        return self._children[values]

    def describe(self) -> Iterable[core.Metric]:
        return (core.CounterMetricFamily(self._name, self._about, labels=self._labels),)

    def collect(self) -> Iterable[core.Metric]:
        family = core.CounterMetricFamily(self._name, self._about, labels=self._labels)
        for values, counter in self._children.items():
            family.add_metric(values, counter.value)
        return (family,)


class Histograms(registry.Collector):
    """The histograms of one name, by the values of their labels."""

    def __init__(
        self,
        name: str,
        about: str,
        labels: Sequence[str] = (),
        *,
        bounds: Sequence[float],
        into: prometheus_client.CollectorRegistry,
    ) -> None:
        self._name: Final = name
        self._about: Final = about
        self._labels: Final = labels
        self._bounds: Final = tuple(bounds)
        self._children: Final[dict[tuple[str, ...], Histogram]] = {}
        into.register(self)

    def of(self, *values: str) -> Histogram:
        """The histogram with these values of the labels, which shows up from now on."""
        if values not in self._children:
            self._children[values] = Histogram(self._bounds)
        return self._children[values]

    def describe(self) -> Iterable[core.Metric]:
        return (core.HistogramMetricFamily(self._name, self._about, labels=self._labels),)

    def collect(self) -> Iterable[core.Metric]:
        family = core.HistogramMetricFamily(self._name, self._about, labels=self._labels)
        for values, histogram in self._children.items():
            histogram.into(family, values)
        return (family,)
