"""The metrics of several components in one process, as one: a family that several have comes once, with all samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import prometheus_client
from prometheus_client import core, registry, samples


class MergedMetrics(registry.Collector):
    """Registered where metrics are served; the parts are asked whenever somebody looks."""

    def __init__(self, parts: Sequence[prometheus_client.CollectorRegistry]) -> None:
        self._parts: Final = parts

    def describe(self) -> Iterable[core.Metric]:
        """Nothing in advance: what parts have is known when they are asked."""
        return ()

    def collect(self) -> Iterable[core.Metric]:
        families: dict[str, core.Metric] = {}
        for part in self._parts:
            for family in part.collect():
                merged = families.get(family.name)
                if merged is None:
                    families[family.name] = merged = core.Metric(
                        family.name, family.documentation, family.type, family.unit
                    )
                _add(merged, family.samples)
        return families.values()


def _add(family: core.Metric, more: Iterable[samples.Sample]) -> None:
    """Samples of the same name and labels are parts of one number."""
    places = {(each.name, tuple(sorted(each.labels.items()))): number for number, each in enumerate(family.samples)}
    for sample in more:
        place = places.get((sample.name, tuple(sorted(sample.labels.items()))))
        if place is None:
            family.samples.append(sample)
        else:
            earlier = family.samples[place]
            is_date = sample.name.endswith("_created")
            value = min(earlier.value, sample.value) if is_date else earlier.value + sample.value
            family.samples[place] = earlier._replace(value=value)
