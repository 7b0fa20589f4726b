"""DRA metrics of the agents of a process, under the kubelet's names."""

from collections.abc import Iterable
from typing import Final

import prometheus_client
from prometheus_client import core
from prometheus_client.registry import Collector

from drachma.node.claims.preparedclaims import PreparedClaims
from drachma.runtime import measures

_ANY: Final = "<any>"
_BOUNDS: Final = tuple(0.1 * (40 / 0.1) ** (step / 14) for step in range(15))


class DRAMetrics:
    """Durations of DRA operations and driver calls, and the number of claims in use."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._operations: Final = measures.Histograms(
            "dra_operations_duration_seconds",
            "How long it took to prepare or unprepare all claims of a pod.",
            ("operation_name", "is_error"),
            bounds=_BOUNDS,
            registry=registry,
        )
        self._calls: Final = measures.Histograms(
            "dra_grpc_operations_duration_seconds",
            "How long drivers took to answer.",
            ("driver_name", "method_name", "grpc_status_code"),
            bounds=_BOUNDS,
            registry=registry,
        )
        self._prepare_skips: Final = measures.Counters(
            "dra_node_prepare_skips",
            "Claims that a driver did not want to prepare.",
            ("driver_name",),
            registry=registry,
        )
        self._unprepare_skips: Final = measures.Counters(
            "dra_node_unprepare_skips",
            "Claims that a driver did not want to unprepare.",
            ("driver_name",),
            registry=registry,
        )
        self._in_use: Final = _ClaimsInUse(registry)

    def observe_operation(self, name: str, *, is_error: bool, seconds: float) -> None:
        self._operations.of(name, str(is_error).lower()).observe(seconds)

    def observe_call(self, driver: str, path: str, code: str, *, seconds: float) -> None:
        self._calls.of(driver, path, code).observe(seconds)

    def count_prepare_skip(self, driver: str) -> None:
        self._prepare_skips.of(driver).inc()

    def count_unprepare_skip(self, driver: str) -> None:
        self._unprepare_skips.of(driver).inc()

    def watch_claims(self, claims: PreparedClaims) -> None:
        """Count the claims of one more node at every scrape."""
        self._in_use.nodes.append(claims)


class _ClaimsInUse(Collector):
    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self.nodes: Final[list[PreparedClaims]] = []
        registry.register(self)

    def describe(self) -> Iterable[core.Metric]:
        return (self._family(),)

    def collect(self) -> Iterable[core.Metric]:
        family = self._family()
        prepared = [record for claims in self.nodes for record in claims if record.is_prepared]
        family.add_metric((_ANY,), len(prepared))
        for driver in sorted({driver for record in prepared for driver in record.drivers}):
            family.add_metric((driver,), sum(driver in record.drivers for record in prepared))
        return (family,)

    def _family(self) -> core.GaugeMetricFamily:
        return core.GaugeMetricFamily(
            "dra_resource_claims_in_use", "Claims prepared since the start that are in use.", labels=("driver_name",)
        )
