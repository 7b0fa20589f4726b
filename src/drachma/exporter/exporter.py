"""The component: follows a cluster by informers, and counts it every few seconds, away from scrapes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from prometheus_client import core, registry

from drachma.api.deviceclass import DeviceClass
from drachma.api.devicetaintrule import DeviceTaintRule
from drachma.api.pod import Pod
from drachma.api.resourceclaim import ResourceClaim
from drachma.api.resourceslice import ResourceSlice
from drachma.client import target
from drachma.exporter import healthcensus
from drachma.exporter.census import Census, Objects
from drachma.exporter.series import Metric
from drachma.queueing.kinds.clusterqueue import ClusterQueue
from drachma.runtime import Surroundings, defects

_CLUSTER_QUEUES: Final = target.Target(
    group="kueue.x-k8s.io",
    versions=("v1beta2",),
    plural="clusterqueues",
    kind="ClusterQueue",
    namespaced=False,
    model=ClusterQueue,
    is_optional=True,
)
"""Clusters without queues have no such kind."""

_PODS: Final = target.view_of(target.of(Pod), healthcensus.PodView)

_DURATION: Final = "drachma_exporter_census_duration_seconds"


class Exporter(registry.Collector):
    """Serves the last census as metrics."""

    def __init__(self, surroundings: Surroundings, census: Census, *, seconds: float) -> None:
        """The cluster is counted every so many seconds."""
        self._clock: Final = surroundings.clock
        self._informers: Final = surroundings.informers
        self._census: Final = census
        self._seconds: Final = seconds
        self._slices: Final = surroundings.informers.of(ResourceSlice).cache
        self._claims: Final = surroundings.informers.of(ResourceClaim).cache
        self._classes: Final = surroundings.informers.of(DeviceClass).cache
        self._rules: Final = surroundings.informers.of(DeviceTaintRule).cache
        self._pods: Final = surroundings.informers.of(_PODS).cache
        self._queues: Final = surroundings.informers.of(_CLUSTER_QUEUES).cache
        self._metrics: list[Metric] = []
        self._duration = 0.0
        surroundings.registry.register(self)

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics of the last census. Scrapes run in another thread and never read caches."""
        for metric in self._metrics:
            family = core.GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
            for labels, value in metric.samples.items():
                family.add_metric(labels, value)
            yield family
        yield core.GaugeMetricFamily(_DURATION, "Time that the last census took.", value=self._duration)

    async def run(self) -> None:
        """Count the cluster again and again, until cancelled. After a defect, the last census is served on."""
        await self._informers.wait_synced()
        await defects.survive("exporter", self._count_for_ever, clock=self._clock)

    async def _count_for_ever(self) -> None:
        while True:
            await self.count()
            await self._clock.sleep(self._seconds)

    async def count(self) -> None:
        """Count the cluster once, in a thread, so that informers go on."""
        began = self._clock.monotonic()
        objects = Objects(
            slices=tuple(self._slices),
            claims=tuple(self._claims),
            classes=tuple(self._classes),
            rules=tuple(self._rules),
            pods=tuple(self._pods),
            queues=tuple(self._queues),
        )
        self._metrics = await asyncio.to_thread(self._census.metrics, objects, now=self._clock.utc())
        self._duration = self._clock.monotonic() - began
