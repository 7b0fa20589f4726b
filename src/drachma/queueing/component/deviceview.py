"""Devices for placement on topologies: the allocator's view of the cluster, and pods that will get devices."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Final

from drachma.allocator import AllocatedState, Allocator, Catalog, Classes, Features, selectors
from drachma.queueing.admission.topologies import ClaimSource
from drachma.queueing.component.caches import Caches, call_on_change
from drachma.queueing.kinds import workload
from drachma.queueing.topology.devicerooms import Claims, DeviceInventory
from drachma.queueing.workloads.podsetinfo import POD_SET_LABEL, WORKLOAD_ANNOTATION
from drachma.queueing.workloads.workloadinfo import WorkloadInfo


class DeviceView:
    """Makes the device inventory of an admission cycle. The allocator is made again after objects have changed."""

    def __init__(self, caches: Caches, features: Features) -> None:
        self._caches: Final = caches
        self._features: Final = features
        self._compiler: Final = selectors.SelectorCompiler(features)
        self._allocator: Allocator | None = None
        sources: tuple[Any, ...] = (caches.slices, caches.classes, caches.claims)
        for source in sources:
            call_on_change(source, self._expire)

    def _expire(self) -> None:
        self._allocator = None

    def inventory(self, holders: Iterable[WorkloadInfo]) -> DeviceInventory:
        """Return the devices, next to the claims of all pods that quota holders have placed."""
        if self._allocator is None:
            self._allocator = self._make_allocator()
        source = ClaimSource(self._caches.devices)
        return DeviceInventory(self._allocator, self._expected(holders, source), claim_source=source)

    def _make_allocator(self) -> Allocator:
        numbers = itertools.count(1)
        allocated = [each for each in self._caches.claims.cache if each.status.allocation is not None]
        return Allocator(
            Catalog(self._caches.slices.cache),
            classes=Classes(self._caches.classes.cache),
            allocated=AllocatedState(allocated, consumable_capacity=self._features.consumable_capacity),
            compiler=self._compiler,
            features=self._features,
            share_ids=lambda: str(next(numbers)),
        )

    def _expected(self, holders: Iterable[WorkloadInfo], source: ClaimSource) -> Mapping[str, list[tuple[Claims, int]]]:
        """Return the pods that are placed on each node and are not bound to it yet."""
        bound: dict[tuple[str, str, str, str], int] = {}
        for each in self._caches.pods.cache:
            name = each.metadata.annotations.get(WORKLOAD_ANNOTATION)
            if name is not None and each.spec.node_name:
                pod_set = each.metadata.labels.get(POD_SET_LABEL, "")
                key = (each.metadata.namespace, name, pod_set, each.spec.node_name)
                bound[key] = bound.get(key, 0) + 1
        expected_pods: dict[str, list[tuple[Claims, int]]] = {}
        for info in holders:
            for name, host, claims, pods in _placed(info.workload, source):
                metadata = info.workload.metadata
                unbound = pods - bound.get((metadata.namespace, metadata.name, name, host), 0)
                if unbound > 0:
                    expected_pods.setdefault(host, []).append((claims, unbound))
        return expected_pods


def _placed(wl: workload.Workload, source: ClaimSource) -> Iterable[tuple[str, str, Claims, int]]:
    """Yield pod set, node, claims of one pod and number of pods for all places of pods with claims."""
    claims = {each.name: source.claims(wl, each) for each in wl.spec.pod_sets if each.template.spec.resource_claims}
    if claims:
        for name, places in source.places(wl).items():
            for domain in places.domains if claims.get(name) else ():
                yield name, domain.values[-1], claims[name], domain.pods
