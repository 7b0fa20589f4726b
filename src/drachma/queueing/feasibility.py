"""Feasibility: whether the pods of a workload that quota would admit find nodes with devices for them.

Quota is a promise about numbers; whether a node has the devices together, free and in reach, only the scheduler
knows. Where the policy requires it, a workload is admitted only if its pods could be placed now, beside those of
everybody who was admitted before. Who can answer that is outside of this package: a :class:`Placement`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from msgspec import structs

from drachma.api import meta, pod
from drachma.queueing import requests
from drachma.queueing.gates import DEFAULT, Gates
from drachma.queueing.kinds import resourceflavor, workload
from drachma.queueing.podsetinfo import POD_SET_LABEL, WORKLOAD_ANNOTATION

PLACEMENT_FAILED: Final = "PlacementFailed"
"""Why quota is not reserved for a workload whose pods would find no nodes."""

Flavors = Mapping[str, resourceflavor.ResourceFlavor]
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
    """The pods that a workload with an admission will have, as they will ask for nodes.

    Without volumes: which ones there are is not known before the pods are.
    """
    admission = of.status.admission
    if admission is None:
        return
    counts = requests.counts_after_reclaim(of, gates)
    by_name = {each.name: each for each in of.spec.pod_sets}
    for assignment in admission.pod_set_assignments:
        pod_set = by_name.get(assignment.name)
        if pod_set is None:
            continue
        count = counts[assignment.name]
        spec = _placed(pod_set.template.spec, assignment, flavors)
        labels = {**pod_set.template.metadata.labels, POD_SET_LABEL: assignment.name}
        for number in range(count if assignment.count is None else min(count, assignment.count)):
            name = f"{of.metadata.name}-{assignment.name}-{number}"
            metadata = meta.ObjectMeta(
                name=name,
                namespace=of.metadata.namespace,
                uid=f"{of.metadata.uid}/{assignment.name}/{number}",
                labels=labels,
                annotations={WORKLOAD_ANNOTATION: of.metadata.name},
            )
            yield pod.Pod(metadata=metadata, spec=spec)


def _placed(spec: pod.PodSpec, assignment: workload.PodSetAssignment, flavors: Flavors) -> pod.PodSpec:
    """A pod's spec with what its flavors add."""
    node_selector = dict(spec.node_selector)
    tolerations = list(spec.tolerations)
    for name in dict.fromkeys(flavor for _, flavor in sorted(assignment.flavors.items())):
        flavor = flavors.get(name)
        if flavor is not None:
            node_selector.update(flavor.spec.node_labels)
            tolerations += flavor.spec.tolerations
    empty = pod.PodSpec()
    return structs.replace(
        spec,
        node_selector=node_selector,
        tolerations=tuple(tolerations),
        volumes=empty.volumes,
        scheduling_gates=empty.scheduling_gates,
        scheduling_group=None,
    )
