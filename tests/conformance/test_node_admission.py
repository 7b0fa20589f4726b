"""Recorded admission, cgroups and OOM scores of pods with claims for node resources (KEP-5517)."""

from typing import Any

from drachma.api import codec, node, pod
from drachma.node.pods import admission, cgroups, podresources
from drachma.values import quantity
from tests.conformance import vectors
from tests.conformance.vectors import Line


@vectors.each("node-admission")
def test_node_admission(case: Line) -> None:
    of, where = _pod(case["pod"]), _decode(case["node"], "Node")
    assert isinstance(where, node.Node)
    with_claims = (case.get("gates") or {}).get("DRANodeAllocatableResources", True)
    cgroup = cgroups.pod_cgroup(of, with_claims=with_claims)
    verdict = admission.admit(of, where, map(_pod, case.get("otherPods") or ()), with_claims=with_claims)
    memory = case["memoryCapacity"]
    outcome = {
        "requests": _texts(podresources.requested(of, with_claims=with_claims)),
        "limits": _texts(podresources.limited(of, with_claims=with_claims)),
        "qosClass": podresources.quality(of),
        "podCgroup": {
            "cpuShares": cgroup.cpu_shares,
            "cpuQuota": cgroup.cpu_quota,
            "cpuPeriod": cgroup.cpu_period,
            "memory": cgroup.memory,
            "hugePageLimit": {str(size): amount for size, amount in cgroup.huge_pages.items()},
        },
        "containers": {
            each.name: {
                "oomScoreAdj": cgroups.oom_score(of, each, memory=memory, with_claims=with_claims),
                "draAllocations": _texts(podresources.claimed_by_container(of, each.name)),
            }
            for each in podresources.all_containers(of)
        },
        "admit": {"admit": verdict.is_admitted, "reason": verdict.reason, "message": verdict.message},
    }
    assert outcome == case["want"]


def _texts(amounts: dict[str, quantity.Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def _pod(document: Line) -> pod.Pod:
    decoded = _decode(document, "Pod")
    assert isinstance(decoded, pod.Pod)
    return decoded


def _decode(document: Line, kind: str) -> Any:
    return codec.decode({"apiVersion": "v1", "kind": kind, **document})
