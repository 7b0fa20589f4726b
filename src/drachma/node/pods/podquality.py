"""Treatment of a pod when its node runs short of resources: quality of service, cgroups, OOM scores, eviction order.

It follows from the pod's spec and its claims (KEP-5517). As in the kubelet, claims add to cgroups and lower OOM scores;
behind the gate ``DrachmaNodeAllocatableQoS`` they also count for the class. Pure: agents apply it, and ``drachma get
pods -o wide`` shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from drachma.api.pod import Pod
from drachma.node.pods import cgroups, podresources
from drachma.node.runtimes.protocol import Cgroup


class PodQuality(msgspec.Struct, frozen=True, kw_only=True):
    """Quality of service class, cgroups and OOM scores of a pod; containers by their names."""

    name: str
    """The quality of service class."""
    cgroup: Cgroup
    containers: Mapping[str, Cgroup]
    oom_scores: Mapping[str, int]


def pod_quality(pod: Pod, *, memory: int, in_quality: bool, with_claims: bool = True) -> PodQuality:
    """Return the quality of a pod on a node with ``memory`` bytes.

    ``with_claims`` counts claims in cgroups and OOM scores, as the gate DRANodeAllocatableResources does; with
    ``in_quality`` they also count for the class.
    """
    containers = podresources.all_containers(pod)
    return PodQuality(
        name=podresources.quality(pod, with_claims=in_quality),
        cgroup=cgroups.pod_cgroup(pod, with_claims=with_claims, in_quality=in_quality),
        containers={
            each.name: cgroups.container_cgroup(pod, each, with_claims=with_claims, in_quality=in_quality)
            for each in containers
        },
        oom_scores={
            each.name: cgroups.oom_score(pod, each, memory=memory, with_claims=with_claims, in_quality=in_quality)
            for each in containers
        },
    )


def eviction_order(pods: Iterable[Pod], used: Mapping[str, int], *, counts_claims: bool) -> list[Pod]:
    """Return the pods of a node in the order of their eviction when its memory runs short.

    ``used`` maps UIDs to the memory in bytes that pods use now. Pods without an entry come first. Then, as in the
    kubelet, come pods that use more than they request, pods of lower priority, and pods that exceed their request most.
    """

    def excess(pod: Pod) -> int:
        requested = podresources.requested(pod, with_claims=counts_claims).get("memory")
        return used[pod.metadata.uid] - (requested.as_int64() if requested is not None else 0)

    def rank(pod: Pod) -> tuple[bool, bool, int, int]:
        is_measured = pod.metadata.uid in used
        bytes_above = excess(pod) if is_measured else 0
        return is_measured, is_measured and bytes_above <= 0, pod.spec.priority or 0, -bytes_above

    return sorted(pods, key=rank)
