"""Feasibility: whether the pods of a workload that quota would admit find nodes with devices for them.

Quota is a promise about numbers; whether a node has the devices together, free and in reach, only the scheduler
knows. Where the policy requires it, a workload is admitted only if its pods could be placed now, beside those of
everybody who was admitted before. Who can answer that is outside of this package: a :class:`Placement`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol

from msgspec import structs

from drachma.api import meta, pod
from drachma.queueing.configuration.gates import DEFAULT, Gates
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.workloads import podsetinfo, requests
from drachma.queueing.workloads.podsetinfo import Flavors

PLACEMENT_FAILED: Final = "PlacementFailed"
"""Why quota is not reserved for a workload whose pods would find no nodes."""

Obstacle = Callable[[workload.Workload, Sequence[workload.Workload]], str | None]
"""Why pods of a workload that is about to be admitted find no nodes, beside those admitted in the same cycle."""


class Placement(Protocol):
    """Somebody who knows nodes, devices and pods."""

    def obstacle(self, of: workload.Workload, holders: Iterable[workload.Workload], *, flavors: Flavors) -> str | None:
        """Why pods of a workload find no nodes, if those of all holders of quota have theirs first; None if they do."""
        ...

    def follow(self, listener: Callable[[], None]) -> None:
        """Begins to look at the cluster, and calls a function whenever an answer may have become another."""
        ...


def pods(of: workload.Workload, flavors: Flavors, *, gates: Gates = DEFAULT) -> Iterator[pod.Pod]:
    """The pods that a workload with an admission will have, as they will ask for nodes; none if its flavors are gone.

    Without volumes: which ones there are is not known before the pods are.
    """
    admission = of.status.admission
    if admission is None:
        return
    try:
        infos = podsetinfo.of_admission(of, flavors, gates)
    except (podsetinfo.FlavorMissingError, podsetinfo.PodSetConflictError):
        return
    counts = requests.counts_after_reclaim(of, gates)
    for info, pod_set in zip(infos, of.spec.pod_sets, strict=False):
        spec = _placed(pod_set.template.spec, info)
        for number in range(min(info.count, counts[pod_set.name])):
            metadata = meta.ObjectMeta(
                name=f"{of.metadata.name}-{info.name}-{number}",
                namespace=of.metadata.namespace,
                uid=f"{of.metadata.uid}/{info.name}/{number}",
                labels={**pod_set.template.metadata.labels, **info.labels},
                annotations=info.annotations,
            )
            yield pod.Pod(metadata=metadata, spec=spec)


def _placed(spec: pod.PodSpec, info: podsetinfo.PodSetInfo) -> pod.PodSpec:
    """A pod's spec with what is added to it when it may start."""
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
