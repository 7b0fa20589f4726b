"""A workload as admission sees it: its requests, queue and priority, and the progress of its last attempt."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import structs

from drachma.api import codec, meta, pod
from drachma.queueing import conditions
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import requests, workloadstate
from drachma.queueing.workloads.placedpods import PlacedPods
from drachma.queueing.workloads.requests import FlavorResource, PodSetRequests
from drachma.queueing.workloads.settings import DEFAULT_SETTINGS, Settings

NO_SHAPE: Final = b""
"""Shape of a workload if shapes are not compared."""

Order = tuple[int, float, str, str]

_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


class Attempt(msgspec.Struct, frozen=True):
    """Progress of the flavor search in a cycle."""

    tried: tuple[Mapping[str, int], ...]
    """For each pod set, by resource: the position of the last flavor that was tried, -1 if all were."""
    generation: int = 0
    cycle: int = 0
    shape: bytes = NO_SHAPE

    @property
    def has_more(self) -> bool:
        """True if some flavors have not been tried."""
        return any(position != -1 for positions in self.tried for position in positions.values())

    def following(self, pod_set: int, resource: str) -> int:
        """Return the position of the next flavor."""
        if pod_set >= len(self.tried):
            return 0
        return self.tried[pod_set].get(resource, -1) + 1


class WorkloadInfo:
    """A workload and values derived from it, computed once."""

    __slots__ = (
        "_flavors", "_reserved_at", "_shape", "attempt", "cluster_queue", "is_evicted", "key", "order", "pod_sets",
        "priority", "queue_time", "topology_usage", "usage", "workload",
    )  # fmt: skip

    def __init__(
        self,
        wl: workload.Workload,
        pod_sets: tuple[PodSetRequests, ...],
        cluster_queue: str,
        *,
        settings: Settings = DEFAULT_SETTINGS,
        attempt: Attempt | None = None,
        topology_usage: tuple[PlacedPods, ...] = (),
    ) -> None:
        """``topology_usage`` are the domains of topologies that its admission assigns to it."""
        self.workload = wl
        self.pod_sets = pod_sets
        self.cluster_queue = cluster_queue
        self.attempt = attempt
        self.key = workloadstate.key(wl)
        self.priority = workloadstate.priority(wl, settings.gates)
        self.queue_time = workloadstate.queue_time(wl, timestamp=settings.timestamp, gates=settings.gates) or _BEGINNING
        self.order: Order = (-self.priority, self.queue_time.timestamp(), wl.metadata.uid, self.key)
        """Sort key of pending workloads: priority, queueing time, uid."""
        self.is_evicted = workloadstate.is_evicted(wl)
        self.usage: requests.Usage = requests.usage(pod_sets)
        self.topology_usage = topology_usage
        self._flavors: frozenset[FlavorResource] | None = None
        self._reserved_at: datetime | None = None
        self._shape = None if settings.gates.on(Gate.SCHEDULING_EQUIVALENCE_HASHING) else NO_SHAPE

    def __repr__(self) -> str:
        return f"WorkloadInfo({self.key!r})"

    def with_version(
        self, wl: workload.Workload, *, settings: Settings = DEFAULT_SETTINGS, attempt: Attempt | None = None
    ) -> WorkloadInfo:
        """Return the info of a version with another status, but the same requests and assignment."""
        info = WorkloadInfo(
            wl,
            self.pod_sets,
            self.cluster_queue,
            settings=settings,
            attempt=attempt,
            topology_usage=self.topology_usage,
        )
        info._flavors, info._shape = self._flavors, self._shape
        return info

    @property
    def shape(self) -> bytes:
        """Shape of the workload: workloads of one shape get the same decision."""
        if self._shape is None:
            self._shape = _shape(self)
        return self._shape

    @property
    def has_reservation(self) -> bool:
        return workloadstate.has_reservation(self.workload)

    def reserved_at(self, now: datetime) -> datetime:
        """Return the time at which its quota was reserved, or ``now`` if that is not written yet."""
        if self._reserved_at is None:
            condition = conditions.find(self.workload.status.conditions, conditions.QUOTA_RESERVED)
            if condition is None or condition.status != "True" or condition.last_transition_time is None:
                return now
            self._reserved_at = condition.last_transition_time
        return self._reserved_at

    def uses(self, keys: frozenset[FlavorResource]) -> bool:
        """Return True if the workload uses any of these resources."""
        if self._flavors is None:
            self._flavors = frozenset(
                FlavorResource(flavor, resource) for each in self.pod_sets for resource, flavor in each.flavors.items()
            )
        return not keys.isdisjoint(self._flavors)


def _shape(info: WorkloadInfo) -> bytes:
    by_name = {each.name: each for each in info.pod_sets}
    parts = []
    for each in info.workload.spec.pod_sets:
        spec = each.template.spec
        totals = by_name.get(each.name)
        relevant = pod.PodSpec(
            init_containers=tuple(map(_container_shape, spec.init_containers)),
            containers=tuple(map(_container_shape, spec.containers)),
            node_selector=spec.node_selector,
            affinity=spec.affinity,
            tolerations=spec.tolerations,
            runtime_class_name=spec.runtime_class_name,
            priority=spec.priority,
            overhead=spec.overhead,
            resource_claims=spec.resource_claims,
            resources=spec.resources,
        )
        shape = structs.replace(each, template=structs.replace(each.template, metadata=_NO_METADATA, spec=relevant))
        parts.append(codec.encode_part(shape))
        if totals is not None:
            parts.append(msgspec.json.encode([totals.count, sorted(totals.requests.items())]))
    parts.append(b"%d" % info.priority)
    return b"\n".join(parts)


_NO_METADATA: Final = meta.ObjectMeta()


def _container_shape(container: pod.Container) -> pod.Container:
    return pod.Container(
        resources=pod.ResourceRequirements(requests=container.resources.requests), ports=container.ports
    )
