"""Ungating: pods get domains without the counts of an admission being written out."""

from typing import Any

import pytest

from drachma.api import pod
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.topology import assignment, ungating

_MOST = 2**31 - 1
_INDEX = "batch.kubernetes.io/job-completion-index"


def _workload(assigned: dict[str, Any], *, count: int, by_rank: bool) -> workload.Workload:
    request = {"unconstrained": True, **({"podIndexLabel": _INDEX} if by_rank else {})}
    assignments = [{"name": "main", "count": count, "topologyAssignment": assigned}]
    document = {
        "metadata": {"name": "wl", "namespace": "default"},
        "spec": {"podSets": [{"name": "main", "count": count, "template": {}, "topologyRequest": request}]},
        "status": {
            "admission": {"clusterQueue": "cq", "podSetAssignments": assignments},
            "conditions": [{"type": "Admitted", "status": "True"}],
        },
    }
    return decoding.decode(document, workload.Workload)


def _pod(index: int) -> pod.Pod:
    labels = {ungating.POD_SET_LABEL: "main", _INDEX: str(index)}
    metadata = {"name": f"p{index}", "labels": labels, "annotations": {ungating.WORKLOAD_NAME: "wl"}}
    gates = [{"name": ungating.GATE}]
    return decoding.decode({"metadata": metadata, "spec": {"schedulingGates": gates}}, pod.Pod)


def _assigned(domains: int, pods: dict[str, Any], **values: Any) -> dict[str, Any]:
    part = {"domainCount": domains, "podCounts": pods, "valuesPerLevel": [values]}
    return {"levels": [assignment.HOSTNAME], "slices": [part]}


@pytest.mark.parametrize("by_rank", [True, False])
def test_large_counts_cost_nothing(by_rank: bool) -> None:
    assigned = _assigned(2, {"individual": [2, _MOST - 2]}, individual={"roots": ["a", "b"]})
    wl = _workload(assigned, count=_MOST, by_rank=by_rank)
    found = ungating.find_pods(wl, [_pod(index) for index in range(4)])
    assert [each.node_selector[assignment.HOSTNAME] for each in found] == ["a", "a", "b", "b"]


def test_a_domain_that_is_repeated_is_one() -> None:
    assert assignment.decode(_assigned(_MOST, {"universal": 2}, universal="a")).domains == ((("a",), 2 * _MOST),)
    assert assignment.decode(_assigned(2, {"individual": [2, 3]}, universal="a")).domains == ((("a",), 5),)
