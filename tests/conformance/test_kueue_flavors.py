"""Kueue's recorded assignments of flavors to one workload."""

from typing import Any

from drachma.queueing.admission.flavorassignment import Assignment, Possibility
from drachma.queueing.admission.flavorsearch import FlavorSearch
from drachma.queueing.admission.snapshot import Snapshot
from drachma.queueing.admission.topologies import Topologies
from drachma.queueing.kinds import clusterqueue, decoding, resourceflavor, topology
from drachma.queueing.topology.inventory import Inventory
from drachma.queueing.workloads import requests
from drachma.queueing.workloads.requests import FlavorResource
from drachma.queueing.workloads.settings import Settings
from drachma.queueing.workloads.workloadinfo import WorkloadInfo
from drachma.values import quantity
from tests.conformance import kueueforms, vectors

_POSSIBILITIES = {str(each): each for each in Possibility}


@vectors.each("kueue-flavors")
def test_kueue_flavors(case: vectors.Line) -> None:
    recorded = case["input"]
    settings = Settings(gates=kueueforms.switched(case), fair_sharing=recorded.get("fairSharing", False))
    queues = [decoding.decode(each, clusterqueue.ClusterQueue) for each in recorded["clusterQueues"]]
    flavors = _flavors(recorded["resourceFlavors"])
    snapshot = Snapshot(
        queues,
        [decoding.decode(each, clusterqueue.Cohort) for each in recorded.get("cohorts", [])],
        flavors,
        inactive=kueueforms.without_flavors(queues, flavors) - {recorded["clusterQueue"]},
        topologies=_topologies(recorded, flavors),
    )
    snapshot.retire_inactive()
    for name, usage in recorded["usage"].items():
        if name in snapshot.queues:
            snapshot.queues[name].node.add(kueueforms.read_usage(usage))
    workload = kueueforms.read_workload(
        {
            "metadata": {"name": "wl", "namespace": "ns"},
            "spec": {"podSets": recorded["podSets"]},
            "status": {"reclaimablePods": recorded.get("reclaimablePods", [])},
        }
    )
    total = requests.total(workload, counting=requests.Counting(gates=settings.gates))
    queue = snapshot.queues[recorded["clusterQueue"]]
    info = WorkloadInfo(workload, total, queue.name, settings=settings)

    def oracle(key: FlavorResource, _amount: int) -> tuple[Possibility, int]:
        answer = recorded["preemptionOracle"].get(str(key), {})
        return _POSSIBILITIES[answer.get("possibility", "Preempt")], answer.get("borrowLevel", 0)

    search = FlavorSearch(
        info, queue, snapshot.flavors, oracle=oracle, settings=settings, topologies=snapshot.topologies
    )
    assignment = search.run()

    assert _document(assignment, settings) == _normal(case["answer"])


def _flavors(recorded: Any) -> dict[str, resourceflavor.ResourceFlavor]:
    documents = recorded.values() if isinstance(recorded, dict) else recorded
    flavors = [decoding.decode(each, resourceflavor.ResourceFlavor) for each in documents]
    return {each.metadata.name: each for each in flavors}


def _topologies(recorded: Any, flavors: dict[str, resourceflavor.ResourceFlavor]) -> Topologies:
    kinds = [decoding.decode(each, topology.Topology) for each in recorded.get("topologies", ())]
    return Topologies.build(flavors.values(), {each.metadata.name: each for each in kinds}, Inventory())


def _document(assignment: Assignment, settings: Settings) -> dict[str, Any]:
    return {
        "representativeMode": str(assignment.mode),
        "borrowing": assignment.borrowing,
        "message": assignment.message,
        "noFitReason": str(assignment.no_fit_reason),
        "usage": {str(key): amount for key, amount in assignment.usage.items()},
        "podSets": [
            {
                "name": each.name,
                "count": each.count,
                "message": each.message,
                "requests": {name: settings.show(name, amount) for name, amount in each.requests.items()},
                "flavors": {
                    resource: {
                        "name": flavor.name,
                        "mode": str(flavor.mode),
                        "borrow": flavor.borrow,
                        "triedFlavorIdx": flavor.tried,
                    }
                    for resource, flavor in each.flavors.items()
                },
            }
            for each in assignment.pod_sets
        ],
    }


def _normal(answer: dict[str, Any]) -> dict[str, Any]:
    """Without what is informative only, and with quantities in their canonical form."""
    for each in answer["podSets"]:
        each.pop("attempts", None)
        each["requests"] = {
            name: str(quantity.Quantity.parse(text)) for name, text in (each.get("requests") or {}).items()
        }
        each["flavors"] = each.get("flavors") or {}
    return answer
