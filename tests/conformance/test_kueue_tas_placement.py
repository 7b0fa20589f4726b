"""Kueue's recorded placements of pod sets on topologies, and the compact form of topology assignments."""

from typing import Any

from drachma.accounting import requests as podrequests
from drachma.api import node, pod
from drachma.queueing import amounts
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.kinds import decoding, resourceflavor, workload
from drachma.queueing.topology import assignment, placement, shape, tree
from drachma.queueing.workloads.placedpods import DomainCount
from tests.conformance import kueueforms, vectors


@vectors.each("kueue-tas-placement")
def test_kueue_tas_placement(case: vectors.Line) -> None:
    _check(case)


@vectors.each("kueue-tas-placement-random")
def test_kueue_tas_placement_random(case: vectors.Line) -> None:
    _check(case)


def _check(case: vectors.Line) -> None:
    recorded = case["input"]
    by_prefix = kueueforms.switched(case).on(Gate.TAS_ENCODE_BY_HOSTNAME)
    if case["kind"] == "encode":
        plain = assignment.Assignment(tuple(recorded["levels"]), _domains(recorded["domains"]))
        encoded = assignment.encode(plain, by_hostname_prefix=by_prefix)
        assert encoded == case["answer"]["topologyAssignment"]
        assert assignment.decode(encoded) == plain
        return
    flavor = decoding.decode(recorded["resourceFlavor"], resourceflavor.ResourceFlavor)
    placer = placement.Placer(
        _tree(recorded, flavor),
        tolerations=flavor.spec.tolerations,
        gates=kueueforms.switched(case),
        ignores_usage=recorded.get("simulateEmpty", False),
    )
    results = placer.place([_request(each) for each in recorded["requests"]], replacement=_replacement(recorded))
    assert {name: _answer(result, by_prefix=by_prefix) for name, result in results.items()} == case["answer"]["podSets"]


def _tree(recorded: dict[str, Any], flavor: resourceflavor.ResourceFlavor) -> tree.Tree:
    topology = recorded["topology"]
    domains = tree.Tree(topology["metadata"]["name"], [level["nodeLabel"] for level in topology["spec"]["levels"]])
    for document in recorded["nodes"]:
        domains.add_node(decoding.decode(document, node.Node), node_labels=flavor.spec.node_labels)
    for document in recorded.get("pods", ()):
        running = decoding.decode(document, pod.Pod)
        if tree.is_running(running):
            nanos = podrequests.total(running)
            domains.add_pod(
                running.spec.node_name, {name: amounts.amount_of_nanos(name, amount) for name, amount in nanos.items()}
            )
    for key, usage in recorded.get("tasUsage", {}).items():
        domains.add_usage((key,) if domains.has_hostnames else tuple(key.split(",")), usage)
    return domains


def _request(recorded: dict[str, Any]) -> shape.PodSetRequest:
    pod_set = decoding.decode(recorded["podSet"], workload.PodSet)
    previous = recorded.get("previousAssignment")
    return shape.PodSetRequest(
        pod_set=pod_set,
        pods=pod_set.count,
        per_pod=recorded["requestsPerPod"],
        group=recorded.get("podSetGroupName"),
        is_implied=recorded.get("implied", False),
        previous=None if previous is None else assignment.decode(previous),
    )


def _replacement(recorded: dict[str, Any]) -> placement.Replacement | None:
    document = recorded.get("workload")
    if document is None or not document.get("status", {}).get("unhealthyNodes"):
        return None
    status = document["status"]
    owners = document["metadata"].get("ownerReferences", ())
    is_pod = len(owners) == 1 and (owners[0]["apiVersion"], owners[0]["kind"]) == ("v1", "Pod")
    is_group = "kueue.x-k8s.io/is-group-workload" in document["metadata"].get("annotations", {})
    return placement.Replacement(
        node=status["unhealthyNodes"][0]["name"],
        assignments={
            each["name"]: assignment.decode(each["topologyAssignment"])
            for each in status["admission"]["podSetAssignments"]
            if "topologyAssignment" in each
        },
        is_single_pod=is_pod and not is_group,
    )


def _domains(recorded: list[dict[str, Any]]) -> tuple[DomainCount, ...]:
    return tuple(DomainCount(tuple(each["values"]), each["count"]) for each in recorded)


def _answer(result: placement.Result, *, by_prefix: bool) -> dict[str, Any]:
    if isinstance(result, placement.NotPlaced):
        return {"reason": result.reason}
    plain = result.assignment
    return {
        "levels": list(plain.levels),
        "domains": [{"values": list(each.values), "count": each.pods} for each in plain.domains],
        "topologyAssignment": assignment.encode(plain, by_hostname_prefix=by_prefix),
    }
