"""What pods are to their nodes when resources run short, as columns and documents.

Claims count on nodes that declare the gate ``DrachmaNodeAllocatableQoS``. The order of eviction is that among the pods
of a node that are looked at, if all of them had more memory than they request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.api import gates, node, pod
from drachma.claims import podstate
from drachma.cli.inventory import table
from drachma.cli.inventory.cluster import Cluster
from drachma.node import podquality

COLUMNS: Final = ("QOS", "CPU-SHARES", "CPU-QUOTA", "MEMORY-MAX", "OOM-SCORES", "EVICTION")


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod is to the node that it is on; ``eviction`` counts from one."""

    quality: podquality.PodQuality
    counts_claims: bool
    eviction: int


def of_cluster(of: Cluster) -> dict[str, Placed]:
    """Of all pods that are on nodes that are looked at too, by their uids."""
    placed: dict[str, Placed] = {}
    for each in of.nodes:
        if "memory" not in each.status.capacity:
            continue
        memory = each.status.capacity["memory"].as_int64()
        counts_claims = gates.Gate.NODE_ALLOCATABLE_QOS in each.status.declared_features
        for position, resident in enumerate(_in_order(of, each, memory, counts_claims=counts_claims), 1):
            placed[resident.metadata.uid] = Placed(
                quality=podquality.of_pod(resident, memory=memory, counts_claims=counts_claims),
                counts_claims=counts_claims,
                eviction=position,
            )
    return placed


def _in_order(of: Cluster, on: node.Node, memory: int, *, counts_claims: bool) -> list[pod.Pod]:
    residents = [each for each in of.pods if each.spec.node_name == on.metadata.name and not podstate.has_ended(each)]
    # Nobody can have more than the whole of the node.
    used = {each.metadata.uid: memory + 1 for each in residents}
    return podquality.eviction_order(residents, used, counts_claims=counts_claims)


def cells(of: Placed | None) -> Mapping[str, str]:
    """What the columns say of a pod."""
    if of is None:
        return dict.fromkeys(COLUMNS, table.NONE)
    quality = of.quality
    limits = (quality.cgroup.cpu_quota, quality.cgroup.memory)
    texts = (
        quality.name,
        str(quality.cgroup.cpu_shares),
        *("max" if each is None else str(each) for each in limits),
        ",".join(f"{name}:{score}" for name, score in quality.oom_scores.items()),
        str(of.eviction),
    )
    return dict(zip(COLUMNS, texts, strict=True))


def document(of: Placed | None) -> dict[str, Any]:
    """The same as a part of a document; empty where it is not known."""
    if of is None:
        return {}
    quality = of.quality
    return {
        "qualityOfService": {
            "class": quality.name,
            "countsClaims": of.counts_claims,
            "cpuShares": quality.cgroup.cpu_shares,
            "cpuQuota": quality.cgroup.cpu_quota,
            "memoryMax": quality.cgroup.memory,
            "oomScores": dict(quality.oom_scores),
            "eviction": of.eviction,
        }
    }
