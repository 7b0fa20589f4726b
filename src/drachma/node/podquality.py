"""What a node makes of a pod when resources run short: quality of service, cgroups, OOM scores, who is evicted first.

All of it follows from the pod's spec, and from its claims where they count (KEP-5517, behind the gate
``DrachmaNodeAllocatableQoS``). Pure: agents apply it, and ``drachma get pods -o wide`` shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from drachma.api import pod
from drachma.node import cgroups, podresources


class PodQuality(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod is to its node; containers by their names."""

    name: str
    """The quality of service class."""
    cgroup: cgroups.Cgroup
    containers: Mapping[str, cgroups.Cgroup]
    oom_scores: Mapping[str, int]


def of_pod(of: pod.Pod, *, memory: int, counts_claims: bool) -> PodQuality:
    """What a pod is to a node with so many bytes of memory.

    Where claims do not count, they add to the pod's cgroup as upstream has it, and to nothing else.
    """
    everything = podresources.all_containers(of)
    return PodQuality(
        name=podresources.quality(of, with_claims=counts_claims),
        cgroup=cgroups.of_pod(of, with_claims=True, in_quality=counts_claims),
        containers={each.name: cgroups.of_container(of, each, in_quality=counts_claims) for each in everything},
        oom_scores={
            each.name: cgroups.oom_score(of, each, memory=memory, with_claims=True, in_quality=counts_claims)
            for each in everything
        },
    )


def eviction_order(pods: Iterable[pod.Pod], used: Mapping[str, int], *, counts_claims: bool) -> list[pod.Pod]:
    """The pods of a node in the order in which they are evicted when its memory runs short, the first one first.

    ``used`` is the bytes of memory that a pod has now, by its uid; pods of which that is not known come first. As the
    kubelet has it, then come those that have more than they request, those of lower priority, and those that are
    furthest above what they request.
    """

    def above(of: pod.Pod) -> int:
        requested = podresources.requested(of, with_claims=counts_claims).get("memory")
        return used[of.metadata.uid] - (requested.as_int64() if requested is not None else 0)

    def rank(of: pod.Pod) -> tuple[bool, bool, int, int]:
        is_measured = of.metadata.uid in used
        excess = above(of) if is_measured else 0
        return is_measured, is_measured and excess <= 0, of.spec.priority or 0, -excess

    return sorted(pods, key=rank)
