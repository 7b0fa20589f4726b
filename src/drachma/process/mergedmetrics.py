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
                known = families.get(family.name)
                if known is None:
                    families[family.name] = known = core.Metric(
                        family.name, family.documentation, family.type, family.unit
                    )
                _add(known, family.samples)
        return families.values()


def _add(family: core.Metric, more: Iterable[samples.Sample]) -> None:
    """Samples of the same name and labels are parts of one number."""
    places = {(each.name, tuple(sorted(each.labels.items()))): number for number, each in enumerate(family.samples)}
    for sample in more:
        place = places.get((sample.name, tuple(sorted(sample.labels.items()))))
        if place is None:
            family.samples.append(sample)
        else:
            known = family.samples[place]
            is_date = sample.name.endswith("_created")
            value = min(known.value, sample.value) if is_date else known.value + sample.value
            family.samples[place] = known._replace(value=value)
