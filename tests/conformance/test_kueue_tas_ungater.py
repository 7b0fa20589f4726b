"""Kueue's recorded ungating of pods on topologies, and the pods and changes of nodes that it takes note of."""

import collections
import json
from datetime import datetime
from typing import Any

import pytest

from drachma.api import node, pod
from drachma.queueing.kinds import decoding, resourceflavor
from drachma.queueing.topology import nodefailures, podusage, tree, ungating
from tests.conformance import kueueforms, vectors


@vectors.each("kueue-tas-ungater")
def test_kueue_tas_ungater(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    match case["kind"]:
        case "ungate":
            _check_ungating(recorded, answer)
        case "nodefailure":
            _check_failures(case)
        case "nodechange":
            old, new = (decoding.decode(recorded[key], node.Node) for key in ("oldNode", "node"))
            assert set(podusage.changed_properties(old, new)) == set(answer["changes"])
        case "istas":
            assert podusage.has_topology(_pod(recorded["pod"])) == answer["tas"]
        case "nontas-counts":
            assert ("pod" in recorded and podusage.is_outside(_pod(recorded["pod"]))) == answer["counted"]
        case "nontas-create":
            assert tree.is_running(_pod(recorded["pod"])) == answer["reconcile"]
        case "nontas-delete":
            assert bool(_pod(recorded["pod"]).spec.node_name) == answer["reconcile"]
        case "nontas-update":
            changed = podusage.is_usage_changed(_pod(recorded["oldPod"]), _pod(recorded["pod"]))
            assert changed == answer["reconcile"]
        case kind:
            pytest.fail(f"no such kind of line: {kind}")


def _pod(document: Any) -> pod.Pod:
    return decoding.decode(document, pod.Pod)


def _check_ungating(recorded: dict[str, Any], answer: dict[str, Any]) -> None:
    pods = [_pod(document) for document in recorded["pods"]]
    selectors = {each.metadata.name: dict(each.spec.node_selector) for each in pods}
    gated = {each.metadata.name for each in pods if ungating.is_gated(each)}
    if not recorded.get("pendingUngateUIDs"):
        for each in ungating.find_pods(kueueforms.read_workload(recorded["workload"]), pods):
            selectors[each.pod.metadata.name].update(each.node_selector)
            gated.discard(each.pod.metadata.name)
    if answer["compare"] == "exact":
        assert {name: (name in gated, selectors[name]) for name in answer["pods"]} == {
            name: (each["gated"], each.get("nodeSelector", {})) for name, each in answer["pods"].items()
        }
    counts = collections.Counter(
        json.dumps(selectors[each.metadata.name], sort_keys=True)
        for each in pods
        if each.metadata.name not in gated and each.status.phase not in {"Succeeded", "Failed"}
    )
    assert counts == {
        json.dumps(each.get("nodeSelector", {}), sort_keys=True): each["count"] for each in answer["counts"]
    }


def _check_failures(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    now = datetime.fromisoformat(recorded["now"])
    by_kind: dict[str, list[Any]] = {}
    for document in recorded["objects"]:
        by_kind.setdefault(document["kind"], []).append(document)
    nodes = {each["metadata"]["name"]: decoding.decode(each, node.Node) for each in by_kind.get("Node", ())}
    workloads = {each["metadata"]["name"]: kueueforms.read_workload(each) for each in by_kind.get("Workload", ())}
    cluster = nodefailures.Cluster(
        workloads=(),
        pods=[_pod(each) for each in by_kind.get("Pod", ())],
        flavors={
            each["metadata"]["name"]: decoding.decode(each, resourceflavor.ResourceFlavor)
            for each in by_kind.get("ResourceFlavor", ())
        },
    )
    failed: set[str] = set()
    outcome = nodefailures.Outcome()
    for name in recorded["reconcileNodes"]:
        current = cluster._replace(workloads=list(workloads.values()))
        gates = kueueforms.switched(case)
        outcome = nodefailures.check(name, nodes.get(name), current, gates=gates, now=now)
        workloads |= {each.metadata.name: each for each in outcome.workloads}
        failed |= {each.metadata.name for each in outcome.failed_pods}
    assert f"{outcome.requeue_after.total_seconds():.0f}s" == answer["requeueAfter"]
    assert failed == {
        name
        for name, status in answer["pods"].items()
        if any(each["type"] == nodefailures.POD_CONDITION for each in status.get("conditions", ()))
    }
    if answer["workload"] is not None:
        (stored,) = workloads.values()
        assert kueueforms.untimed(_conditions(decoding.document(stored.status))) == _conditions(answer["workload"])


def _conditions(status: dict[str, Any]) -> dict[str, Any]:
    """The status with its conditions in the order of their types."""
    listed = sorted(status.get("conditions", ()), key=lambda each: str(each["type"]))
    return {**status, "conditions": listed}
