"""Quality of service of pods on their nodes, as columns and documents.

Claims count on nodes that declare the gate ``DrachmaNodeAllocatableQoS``. The eviction order is that of a node's listed
pods, if all of them used more memory than they request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from drachma.api import gates, node, pod
from drachma.claims import podstate
from drachma.cli.inventory import table
from drachma.cli.inventory.cluster import Cluster

if TYPE_CHECKING:
    from drachma.node.pods import podquality

COLUMNS: Final = ("QOS", "CPU-SHARES", "CPU-QUOTA", "MEMORY-MAX", "OOM-SCORES", "EVICTION")


class BoundQuality(NamedTuple):
    """Quality of service of a pod on its node; ``eviction`` is its position in the eviction order, from one."""

    quality: podquality.PodQuality
    counts_claims: bool
    eviction: int


def pod_qualities(cluster: Cluster) -> dict[str, BoundQuality]:
    """Return the qualities of all pods on listed nodes, by the pods' UIDs. Most tables list no nodes."""
    if not cluster.nodes:
        return {}
    # Only wide tables and documents need it, and it takes a tenth of a second to import.
    from drachma.node.pods import podquality

    qualities: dict[str, BoundQuality] = {}
    for each in cluster.nodes:
        if "memory" not in each.status.capacity:
            continue
        memory = each.status.capacity["memory"].as_int64()
        counts_claims = gates.Gate.NODE_ALLOCATABLE_QOS in each.status.declared_features
        for position, resident in enumerate(_eviction_order(cluster, each, memory, counts_claims=counts_claims), 1):
            qualities[resident.metadata.uid] = BoundQuality(
                quality=podquality.pod_quality(resident, memory=memory, in_quality=counts_claims),
                counts_claims=counts_claims,
                eviction=position,
            )
    return qualities


def _eviction_order(cluster: Cluster, host: node.Node, memory: int, *, counts_claims: bool) -> list[pod.Pod]:
    residents = [
        each for each in cluster.pods if each.spec.node_name == host.metadata.name and not podstate.has_ended(each)
    ]
    # No pod can use more than the memory of the node.
    used = {each.metadata.uid: memory + 1 for each in residents}
    from drachma.node.pods import podquality

    return podquality.eviction_order(residents, used, counts_claims=counts_claims)


def cells(bound: BoundQuality | None) -> Mapping[str, str]:
    """Return the cells of a pod."""
    if bound is None:
        return dict.fromkeys(COLUMNS, table.NONE)
    quality = bound.quality
    limits = (quality.cgroup.cpu_quota, quality.cgroup.memory)
    texts = (
        quality.name,
        str(quality.cgroup.cpu_shares),
        *("max" if each is None else str(each) for each in limits),
        ",".join(f"{name}:{score}" for name, score in quality.oom_scores.items()),
        str(bound.eviction),
    )
    return dict(zip(COLUMNS, texts, strict=True))


def document(bound: BoundQuality | None) -> dict[str, Any]:
    """Return the quality as a part of a document; empty if it is unknown."""
    if bound is None:
        return {}
    quality = bound.quality
    return {
        "qualityOfService": {
            "class": quality.name,
            "countsClaims": bound.counts_claims,
            "cpuShares": quality.cgroup.cpu_shares,
            "cpuQuota": quality.cgroup.cpu_quota,
            "memoryMax": quality.cgroup.memory,
            "oomScores": dict(quality.oom_scores),
            "eviction": bound.eviction,
        }
    }
