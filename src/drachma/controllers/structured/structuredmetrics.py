"""Metrics of the first alpha: classes with structured parameters, and claims that are allocated with them.

KEP-4381's first alpha asks for both numbers and leaves their names open. They are counted at each scrape, from the
caches of the informers.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import prometheus_client
from prometheus_client import core, registry

from drachma.api.v1alpha2 import resourceclaim, resourceclass
from drachma.runtime import Informers


class StructuredMetrics(registry.Collector):
    """Gauges of structured classes and of claims that are allocated with structured parameters."""

    def __init__(self, informers: Informers, *, registry: prometheus_client.CollectorRegistry) -> None:
        self._classes: Final = informers.of(resourceclass.ResourceClass).cache
        self._claims: Final = informers.of(resourceclaim.ResourceClaim).cache
        registry.register(self)

    def describe(self) -> Iterable[core.Metric]:
        """Describe nothing: names are checked when metrics are collected."""
        return ()

    def collect(self) -> Iterator[core.Metric]:
        yield core.GaugeMetricFamily(
            "drachma_structured_parameters_classes",
            "Resource classes (v1alpha2) that use structured parameters.",
            value=sum(bool(each.structured_parameters) for each in self._classes),
        )
        yield core.GaugeMetricFamily(
            "drachma_structured_parameters_allocated_claims",
            "Resource claims (v1alpha2) that are allocated with structured parameters.",
            value=sum(_is_structured(each) for each in self._claims),
        )


def _is_structured(claim: resourceclaim.ResourceClaim) -> bool:
    allocation = claim.status.allocation
    return allocation is not None and any(each.structured_data is not None for each in allocation.resource_handles)
