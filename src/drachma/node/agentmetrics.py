"""Metrics of the agents of a process, under the kubelet's names.

All numbers are kept by node. The process exports their sums, as a process with one agent would; each node's endpoint
exports the node's own. So a node that measures nothing costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import prometheus_client
from prometheus_client import core
from prometheus_client.registry import Collector

from drachma.runtime import measures

_ANY: Final = "<any>"
_GONE: Final = "<gone>"
"""Stands for all nodes that are gone; no node can have this name."""
_NOWHERE: Final = "<nowhere>"
"""Node without any metrics."""

_BOUNDS: Final = tuple(0.1 * (40 / 0.1) ** (step / 14) for step in range(15))

_OPERATIONS: Final = "dra_operations_duration_seconds"
_CALLS: Final = "dra_grpc_operations_duration_seconds"
_PREPARE_SKIPS: Final = "dra_node_prepare_skips"
_UNPREPARE_SKIPS: Final = "dra_node_unprepare_skips"
_STARTS: Final = "kubelet_started_containers"
_START_ERRORS: Final = "kubelet_started_containers_errors"

_HISTOGRAMS: Final = {
    _OPERATIONS: ("How long it took to prepare or unprepare all claims of a pod.", ("operation_name", "is_error")),
    _CALLS: ("How long drivers took to answer.", ("driver_name", "method_name", "grpc_status_code")),
}
_COUNTERS: Final = {
    _PREPARE_SKIPS: ("Claims that a driver did not want to prepare.", ("driver_name",)),
    _UNPREPARE_SKIPS: ("Claims that a driver did not want to unprepare.", ("driver_name",)),
    _STARTS: ("Containers that were started, and attempts.", ("container_type",)),
    _START_ERRORS: ("Containers that could not be started.", ("container_type", "code")),
}


class ClaimCount(NamedTuple):
    """A claim that a node has a record of: its drivers, and True if it was prepared since the agent started."""

    drivers: Iterable[str]
    is_prepared: bool


CountClaims = Callable[[], Iterable[ClaimCount]]
"""Returns the claims of a node, whenever metrics are scraped."""

_Labels = tuple[str, ...]


class AgentMetrics(Collector):
    """Metrics of all agents of a process."""

    def __init__(self, registry: prometheus_client.CollectorRegistry, *, labels_nodes: bool = False) -> None:
        """With ``labels_nodes`` the process exports the number of claims by node, for processes with many agents."""
        self._labels_nodes: Final = labels_nodes
        self._histograms: Final[dict[str, dict[str, dict[_Labels, measures.Histogram]]]] = {}
        self._counters: Final[dict[str, dict[str, dict[_Labels, measures.Counter]]]] = {}
        self._claims: Final[dict[str, CountClaims]] = {}
        registry.register(self)

    def node_metrics(self, node: str) -> NodeMetrics:
        """Return the metrics of one node."""
        return NodeMetrics(self, node)

    def histogram(self, node: str, name: str, *labels: str) -> measures.Histogram:
        """Return a histogram of a node, which is exported from now on."""
        children = self._histograms.setdefault(name, {}).setdefault(node, {})
        if labels not in children:
            children[labels] = measures.Histogram(_BOUNDS)
        return children[labels]

    def counter(self, node: str, name: str, *labels: str) -> measures.Counter:
        """Return a counter of a node, which is exported from now on."""
        children = self._counters.setdefault(name, {}).setdefault(node, {})
        if labels not in children:
            children[labels] = measures.Counter()
        return children[labels]

    def watch_claims(self, node: str, count: CountClaims) -> None:
        """Count the claims of a node at every scrape."""
        self._claims[node] = count

    def forget(self, node: str) -> None:
        """Forget a node that is gone. Its numbers stay in the sums."""
        self._claims.pop(node, None)
        for name, histograms in self._histograms.items():
            for labels, histogram in histograms.pop(node, {}).items():
                self.histogram(_GONE, name, *labels).include(histogram)
        for name, counters in self._counters.items():
            for labels, counter in counters.pop(node, {}).items():
                self.counter(_GONE, name, *labels).value += counter.value

    def describe(self) -> Iterable[core.Metric]:
        return list(self._families(_NOWHERE, labels_nodes=self._labels_nodes))

    def collect(self) -> Iterable[core.Metric]:
        return self._families(None, labels_nodes=self._labels_nodes)

    def collect_node(self, node: str) -> Iterable[core.Metric]:
        """Yield the metrics of one node."""
        return self._families(node, labels_nodes=False)

    def _families(self, node: str | None, *, labels_nodes: bool) -> Iterator[core.Metric]:
        """Yield the metrics of a node, or the sums of all nodes."""
        for name, (text, labels) in _HISTOGRAMS.items():
            histograms = core.HistogramMetricFamily(name, text, labels=labels)
            sums: dict[_Labels, measures.Histogram] = {}
            for values, histogram in _children(self._histograms.get(name, {}), node):
                sums.setdefault(values, measures.Histogram(_BOUNDS)).include(histogram)
            for values, histogram in sums.items():
                histogram.add_to(histograms, values)
            yield histograms
        for name, (text, labels) in _COUNTERS.items():
            counters = core.CounterMetricFamily(name, text, labels=labels)
            totals: dict[_Labels, float] = {}
            for values, counter in _children(self._counters.get(name, {}), node):
                totals[values] = totals.get(values, 0.0) + counter.value
            for values, total in totals.items():
                counters.add_metric(values, total)
            yield counters
        yield from self._claim_families(node, labels_nodes=labels_nodes)

    def _claim_families(self, node: str | None, *, labels_nodes: bool) -> Iterator[core.Metric]:
        labels = ("driver_name", "node") if labels_nodes else ("driver_name",)
        in_use = core.GaugeMetricFamily(
            "dra_resource_claims_in_use", "Claims prepared since the start that are in use.", labels=labels
        )
        needed = core.GaugeMetricFamily(
            "drachma_dra_resource_claims_held",
            "Claims that need their drivers: prepared, or begun, and not unprepared yet.",
            labels=labels,
        )
        nodes = {name: list(count()) for name, count in self._claims.items() if node in (None, name)}
        groups: Mapping[str, list[ClaimCount]] = (
            nodes if labels_nodes else {"": [claim for claims in nodes.values() for claim in claims]}
        )
        for name, claims in groups.items():
            for family, family_claims in ((in_use, [each for each in claims if each.is_prepared]), (needed, claims)):
                for driver, count in _count_by_driver(family_claims).items():
                    family.add_metric((driver, name) if labels_nodes else (driver,), count)
        yield in_use
        yield needed


def _children(
    by_node: Mapping[str, Mapping[_Labels, measures.MeasureT]], node: str | None
) -> Iterator[tuple[_Labels, measures.MeasureT]]:
    for name, children in by_node.items():
        if node in (None, name):
            yield from children.items()


def _count_by_driver(claims: list[ClaimCount]) -> dict[str, int]:
    counts = {_ANY: len(claims)}
    for driver in sorted({driver for claim in claims for driver in claim.drivers}):
        counts[driver] = sum(driver in claim.drivers for claim in claims)
    return counts


class NodeMetrics(Collector):
    """Metrics of one node: DRA operations and driver calls, claims in use, started containers."""

    __slots__ = ("_all", "_node")

    def __init__(self, all_nodes: AgentMetrics, node: str) -> None:
        self._all = all_nodes
        self._node = node

    def observe_operation(self, name: str, *, is_error: bool, seconds: float) -> None:
        self._all.histogram(self._node, _OPERATIONS, name, str(is_error).lower()).observe(seconds)

    def observe_call(self, driver: str, path: str, code: str, *, seconds: float) -> None:
        self._all.histogram(self._node, _CALLS, driver, path, code).observe(seconds)

    def count_prepare_skip(self, driver: str) -> None:
        self._all.counter(self._node, _PREPARE_SKIPS, driver).inc()

    def count_unprepare_skip(self, driver: str) -> None:
        self._all.counter(self._node, _UNPREPARE_SKIPS, driver).inc()

    def count_start(self, container_type: str) -> None:
        """Count an attempt to start a container: ``container``, ``init_container`` or ``ephemeral_container``."""
        self._all.counter(self._node, _STARTS, container_type).inc()

    def count_start_error(self, container_type: str, code: str) -> None:
        """Count a container that could not be started; ``code`` is the reason in its status."""
        self._all.counter(self._node, _START_ERRORS, container_type, code).inc()

    def watch_claims(self, count: CountClaims) -> None:
        """Count the claims of the node at every scrape."""
        self._all.watch_claims(self._node, count)

    def collect(self) -> Iterable[core.Metric]:
        return self._all.collect_node(self._node)

    def text(self) -> bytes:
        """Return the metrics in Prometheus' text form."""
        registry = prometheus_client.CollectorRegistry(auto_describe=False)
        registry.register(self)
        return prometheus_client.generate_latest(registry)
