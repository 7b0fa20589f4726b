"""Metrics of the process's caches: the bytes that each holds, and the limit on all of them."""

from collections.abc import Iterator
from typing import Final

from prometheus_client import core, registry

from drachma.bounds import memory


class CacheMetrics(registry.Collector):
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
