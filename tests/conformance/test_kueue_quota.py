"""Kueue's recorded quota trees: what can be had where, and who has how much more than their own."""

from typing import Any

from drachma.queueing.admission import admitter, dominantshare, quotatree
from drachma.queueing.kinds import clusterqueue, decoding, resourceflavor
from drachma.queueing.workloads import requests, workloadstate
from drachma.queueing.workloads.requests import FlavorResource
from tests.conformance import kueueforms, vectors


@vectors.each("kueue-quota")
def test_kueue_quota(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    queues = [decoding.decode(each, clusterqueue.ClusterQueue) for each in recorded.get("clusterQueues", [])]
    cohorts = [decoding.decode(each, clusterqueue.Cohort) for each in recorded.get("cohorts", [])]
    tree = quotatree.QuotaTree(queues, cohorts)
    for name, usage in recorded.get("usage", {}).items():
        tree.queues[name].add(kueueforms.read_usage(usage))
    for document in recorded.get("workloads", []):
        workload = kueueforms.read_workload(document)
        if workload.status.admission is not None and workloadstate.has_reservation(workload):
            tree.queues[workload.status.admission.cluster_queue].add(requests.usage(requests.total(workload)))

    if case["kind"] == "drs":
        _check_shares(tree, recorded, answer)
        return
    if case["test"] == "TestSnapshot":
        flavors = [decoding.decode(each, resourceflavor.ResourceFlavor) for each in recorded.get("resourceFlavors", [])]
        by_name = {each.metadata.name: each for each in flavors}
        topologies = {each["metadata"]["name"] for each in recorded.get("topologies", [])}
        for queue in queues:
            name = queue.metadata.name
            if name in tree.queues and not admitter.is_active(queue, by_name, topologies=topologies):
                tree.retire(name)
    assert {name: _queue(node) for name, node in tree.queues.items()} == {
        name: _without_workloads(each) for name, each in answer["clusterQueues"].items()
    }
    assert {name: _cohort(node) for name, node in tree.cohorts.items()} == {
        name: _without_workloads(each) for name, each in answer["cohorts"].items()
    }


def _check_shares(tree: quotatree.QuotaTree, recorded: dict[str, Any], answer: dict[str, Any]) -> None:
    for expected in answer["shares"]:
        nodes = tree.queues if expected["kind"] == "ClusterQueue" else tree.cohorts
        is_asked = expected["name"] == recorded["usageQueue"]
        more = kueueforms.read_usage(recorded.get("request", {})) if is_asked else {}
        assert _share(nodes[expected["name"]], more) == _floats(expected)


def _named(amounts: dict[FlavorResource, int]) -> dict[str, int]:
    return {str(key): amount for key, amount in amounts.items()}


def _queue(node: quotatree.Node) -> dict[str, Any]:
    return {
        "available": _named({key: max(0, node.available(key)) for key in node.subtree}),
        "cohort": node.parent.name if node.parent is not None else "",
        "potentiallyAvailable": _named({key: node.potential(key) for key in node.subtree}),
        "share": _share(node, {}),
        "subtreeQuota": _named(node.subtree),
        "usage": _named(node.usage),
    }


def _cohort(node: quotatree.Node) -> dict[str, Any]:
    return {
        "available": _named({key: node.available(key) for key in node.subtree}),
        "parent": node.parent.name if node.parent is not None else "",
        "share": _share(node, {}),
        "subtreeQuota": _named(node.subtree),
        "usage": _named(node.usage),
    }


def _without_workloads(expected: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in expected.items() if key != "workloads"}
    return {**kept, "share": _floats(expected["share"])}


def _share(node: quotatree.Node, more: dict[FlavorResource, int]) -> dict[str, Any]:
    share = dominantshare.share(node, more)
    return {
        "borrowing": share.is_borrowing,
        "dominantResource": share.resource,
        "fairWeight": share.weight,
        "kind": "ClusterQueue" if node.is_queue else "Cohort",
        "name": node.name,
        "preciseWeightedShare": share.weighted,
        "unweightedRatio": share.ratio,
        "weightedShare": share.rounded,
    }


def _floats(expected: dict[str, Any]) -> dict[str, Any]:
    return {**expected, "preciseWeightedShare": float(expected["preciseWeightedShare"])}
