"""Feasibility: whether the pods of a workload that quota would admit find nodes with devices.

Quota counts devices. Only the scheduler knows whether a node has them together, free and in reach. If the policy
requires it, a workload is admitted only if its pods could be placed now, next to the pods of all workloads admitted
before. A :class:`Placement` outside of this package answers that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from msgspec import structs

from drachma.api import meta, pod
from drachma.queueing.admission import topologies
from drachma.queueing.configuration.gates import DEFAULT, Gates
from drachma.queueing.devices import groupclaims
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.topology import assignment as compact
from drachma.queueing.workloads import podsetinfo, requests
from drachma.queueing.workloads.podsetinfo import Flavors

PLACEMENT_FAILED: Final = "PlacementFailed"
"""Reason why no quota is reserved for a workload whose pods would find no nodes."""

Obstacle = Callable[[workload.Workload, Sequence[workload.Workload]], str | None]
"""Returns the reason why pods of a workload find no nodes, next to those of workloads admitted in the same cycle."""


class Placement(Protocol):
    """Access to nodes, devices and pods of the cluster."""

    def obstacle(self, wl: workload.Workload, holders: Iterable[workload.Workload], *, flavors: Flavors) -> str | None:
        """Return why pods of a workload find no nodes next to those of all quota holders, or None if they find some."""
        ...

    def follow(self, listener: Callable[[], None]) -> None:
        """Start to watch the cluster, and call a function whenever an answer may have changed."""
        ...


def pods(
    wl: workload.Workload, flavors: Flavors, *, gates: Gates = DEFAULT, groups: groupclaims.Groups | None = None
) -> Iterator[pod.Pod]:
    """Return the pods that an admitted workload will have, as the scheduler will see them; none if a flavor is gone.

    Volumes are left out: they are not known before the pods exist. A claim that pods share in one of ``groups`` has
    only the first of them, because it is allocated once.
    """
    admission = wl.status.admission
    if admission is None:
        return
    try:
        infos = podsetinfo.admission_infos(wl, flavors, gates)
    except (podsetinfo.FlavorMissingError, podsetinfo.PodSetConflictError):
        return
    counts = requests.counts_after_reclaim(wl, gates)
    allocated: set[str] = set()
    for info, pod_set in zip(infos, wl.spec.pod_sets, strict=False):
        spec = _placed(pod_set.template.spec, info)
        group_claims = groupclaims.pod_set_claims(wl, pod_set, groups)
        places = _selectors(topologies.admitted_places(wl).get(info.name))
        for number in range(min(info.count, counts[pod_set.name])):
            selector = next(places, {})
            metadata = meta.ObjectMeta(
                name=f"{wl.metadata.name}-{info.name}-{number}",
                namespace=wl.metadata.namespace,
                uid=f"{wl.metadata.uid}/{info.name}/{number}",
                labels={**pod_set.template.metadata.labels, **info.labels},
                annotations=info.annotations,
            )
            placed = spec if not selector else _with_selector(spec, selector)
            if group_claims:
                placed = _without_claims(placed, {name for name, each in group_claims.items() if each.key in allocated})
                allocated |= {each.key for each in group_claims.values()}
            yield pod.Pod(metadata=metadata, spec=placed)


def _without_claims(spec: pod.PodSpec, names: set[str]) -> pod.PodSpec:
    claims = tuple(each for each in spec.resource_claims if each.name not in names)
    return structs.replace(spec, resource_claims=claims)


def _with_selector(spec: pod.PodSpec, selector: Mapping[str, str]) -> pod.PodSpec:
    return structs.replace(spec, node_selector={**spec.node_selector, **selector})


def _selectors(places: compact.Assignment | None) -> Iterator[dict[str, str]]:
    """Yield the node selectors of pods that are placed on a topology, in the order of the places."""
    for domain in places.domains if places is not None else ():
        assert places is not None
        for _ in range(domain.pods):
            yield dict(zip(places.levels, domain.values, strict=True))


def _placed(spec: pod.PodSpec, info: podsetinfo.PodSetInfo) -> pod.PodSpec:
    """Return the pod spec of a template with the changes of admission."""
    added = tuple(decoding.decode(each, pod.Toleration) for each in info.tolerations)
    empty = pod.PodSpec()
    return structs.replace(
        spec,
        node_selector={**spec.node_selector, **info.node_selector},
        tolerations=(*spec.tolerations, *added),
        volumes=empty.volumes,
        scheduling_gates=empty.scheduling_gates,
        scheduling_group=None,
    )
