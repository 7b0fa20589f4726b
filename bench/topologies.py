"""Placement on topologies in process: one pod set, and one admission cycle with many candidates for preemption.

Nodes are in racks of 40 and blocks of 16 racks, as in Kueue's measurements: 96 CPUs and 8 GPUs each.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.timing import table
from drachma.api import node
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, resourceflavor, topology, workload
from drachma.queueing.workloads import admissibility, transitions

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_RACK, _BLOCK, _HOST = "rack", "block", "kubernetes.io/hostname"
_GPU = "example.com/gpu"
_ROUNDS = 5


def _node(number: int) -> node.Node:
    labels = {_BLOCK: f"b{number // 640}", _RACK: f"r{number // 40}", _HOST: f"n{number}", "pool": "gpu"}
    return decoding.decode(
        {
            "metadata": {"name": f"n{number}", "labels": labels},
            "status": {
                "allocatable": {"cpu": "96", "memory": "1Ti", "pods": "110", _GPU: "8"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        },
        node.Node,
    )


def _admitter(nodes: int) -> Admitter:
    quota = [{"name": name, "nominalQuota": "10000000"} for name in ("cpu", _GPU)]
    spec = {
        "namespaceSelector": {},
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        "resourceGroups": [
            {"coveredResources": ["cpu", _GPU], "flavors": [{"name": "gpu", "resources": quota}]},
        ],
    }
    admitter = Admitter()
    for number in range(nodes):
        admitter.set_node(_node(number))
    admitter.set_places({"default": admissibility.Place()})
    levels = [{"nodeLabel": label} for label in (_BLOCK, _RACK, _HOST)]
    admitter.set_queues(
        [decoding.decode({"metadata": {"name": "queue"}, "spec": spec}, clusterqueue.ClusterQueue)],
        local_queues=[
            decoding.decode(
                {"metadata": {"name": "jobs", "namespace": "default"}, "spec": {"clusterQueue": "queue"}},
                localqueue.LocalQueue,
            )
        ],
        flavors=[
            decoding.decode(
                {"metadata": {"name": "gpu"}, "spec": {"topologyName": "racks", "nodeLabels": {"pool": "gpu"}}},
                resourceflavor.ResourceFlavor,
            )
        ],
        topologies=[decoding.decode({"metadata": {"name": "racks"}, "spec": {"levels": levels}}, topology.Topology)],
    )
    return admitter


def _workload(
    name: str, request: dict[str, Any], *, pods: int, cpus: str = "4", priority: int = 0
) -> workload.Workload:
    container = {"name": "c", "resources": {"requests": {"cpu": cpus, _GPU: "1"}}}
    return decoding.decode(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": name,
                "creationTimestamp": (_NOW + timedelta(seconds=priority)).isoformat(),
            },
            "spec": {
                "queueName": "jobs",
                "priority": priority,
                "podSets": [
                    {
                        "name": "main",
                        "count": pods,
                        "template": {"spec": {"containers": [container]}},
                        "topologyRequest": request,
                    }
                ],
            },
        },
        workload.Workload,
    )


def _placements(nodes: int) -> tuple[str, ...]:
    """Return the cost of admitting one workload: flavor, quota and places, next to workloads admitted before.

    The second figure is for pods with requests that no workload had before, which are counted on every node.
    """
    half = nodes * 4
    rows = [f"{nodes:,}"]
    for request, pods in (
        ({"required": _RACK}, 300),
        ({"preferred": _BLOCK}, half),
        ({"unconstrained": True}, half),
        ({"preferred": _BLOCK, "podSetSliceRequiredTopology": _RACK, "podSetSliceSize": 4}, half),
    ):
        admitter = _admitter(nodes)
        admitter.enqueue(_workload("before", {"unconstrained": True}, pods=3), _NOW)
        admitter.run_cycle(_NOW)
        known = [_workload("wl", request, pods=pods)] * _ROUNDS
        new = [_workload("wl", request, pods=pods, cpus=f"{3000 + number}m") for number in range(_ROUNDS)]
        rows.append(f"{_least(admitter, known):.1f}, {_least(admitter, new):.1f} ms")
    return tuple(rows)


def _least(admitter: Admitter, workloads: list[workload.Workload]) -> float:
    """Return the least milliseconds of CPU time that a decision about one of the workloads takes."""
    spent = []
    for each in workloads:
        info = admitter.info(each, "queue")
        began = time.process_time()
        entry = admitter.consider(info, _NOW)
        spent.append(time.process_time() - began)
        assert entry.admission is not None, entry.message
    return min(spent) * 1e3


def _preemption(nodes: int, candidates: int) -> tuple[str, ...]:
    """Return the cost of a cycle in which a workload needs racks that less important workloads use."""
    admitter = _admitter(nodes)
    used = nodes * 8 // candidates
    waiting = [
        _workload(f"low-{number}", {"unconstrained": True}, pods=used, priority=number % 50)
        for number in range(candidates)
    ]
    rest = nodes * 8 - used * candidates
    if rest:
        waiting.append(_workload("important", {"unconstrained": True}, pods=rest, priority=2000))
    for wl in waiting:
        admitter.enqueue(wl, _NOW)
        report = admitter.run_cycle(_NOW)
        assert report is not None
    for key, each in list(admitter.snapshot.holders.items()):
        admitter.hold(transitions.sync_admitted(each.workload, _NOW))
        assert key in admitter.snapshot.holders
    admitter.enqueue(_workload("high", {"required": _RACK}, pods=300, priority=1000), _NOW)
    began = time.process_time()
    report = admitter.run_cycle(_NOW)
    spent = time.process_time() - began
    assert report is not None
    (entry,) = report.entries
    assert entry.victims, entry.message
    return f"{nodes:,}", f"{candidates:,}", f"{len(entry.victims)}", f"{spent:.2f} s"


def main() -> None:
    table(
        "admission of one workload on a topology: known requests, new requests",
        ("nodes", "required rack, 300 pods", "preferred block, half", "unconstrained, half", "slices of 4, half"),
        [_placements(nodes) for nodes in (40, 640, 5000)],
    )
    table(
        "one cycle with preemption on a topology",
        ("nodes", "candidates", "victims", "CPU"),
        [_preemption(640, 300), _preemption(2000, 700)],
    )


if __name__ == "__main__":
    main()
