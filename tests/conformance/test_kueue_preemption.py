"""Kueue's recorded victims: who has to go for an incoming workload, why, and what their conditions say."""

from datetime import UTC, datetime
from typing import Any

from drachma.queueing.admission import preemption, preemptionoracle
from drachma.queueing.admission.flavorassignment import Assignment, FlavorAssignment, Mode, PodSetAssignment
from drachma.queueing.admission.snapshot import Snapshot
from drachma.queueing.kinds import clusterqueue, decoding
from drachma.queueing.workloads import requests, transitions
from drachma.queueing.workloads.settings import Settings
from drachma.queueing.workloads.workloadinfo import WorkloadInfo
from tests.conformance import kueueforms, vectors

_NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
_MODES = {str(mode): mode for mode in Mode}


@vectors.each("kueue-preemption")
def test_kueue_preemption(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    settings = Settings(
        gates=kueueforms.switched(case),
        fair_sharing=recorded["fairSharing"],
        strategies=tuple(recorded.get("strategies", Settings().strategies)),
    )
    snapshot = Snapshot(
        [decoding.decode(each, clusterqueue.ClusterQueue) for each in recorded["clusterQueues"]],
        [decoding.decode(each, clusterqueue.Cohort) for each in recorded.get("cohorts", [])],
    )
    snapshot.hold(_info(each, "", settings) for each in recorded["admitted"])
    info = _info(recorded["incoming"], recorded["clusterQueue"], settings)
    usage = _usage(snapshot)

    oracle = preemptionoracle.PreemptionOracle(info, snapshot, settings=settings, now=_NOW)
    targets = oracle.targets_for(_assignment(recorded["assignment"], info))

    assert sorted(_document(target) for target in targets) == sorted(
        (each["workload"], each["reason"], each["clusterQueue"]) for each in answer["targets"]
    )
    assert _usage(snapshot) == usage
    for target in targets:
        if target.info.key in answer.get("conditions", {}):
            _check_conditions(info, target, snapshot, answer)


def _check_conditions(
    info: WorkloadInfo, target: preemption.Target, snapshot: Snapshot, answer: dict[str, Any]
) -> None:
    message = preemption.message(info, target, path=snapshot.queues[info.cluster_queue].path)
    victim = target.info.workload
    if not target.info.is_evicted:
        victim = transitions.preempted(victim, reason=target.reason, message=message, now=_NOW)
        victim = transitions.evict(victim, reason=transitions.PREEMPTED, message=message, now=_NOW)
    expected = answer["conditions"][target.info.key]
    conditions = {
        each.type: (each.status, each.reason, each.message)
        for each in victim.status.conditions
        if each.type in ("Evicted", "Preempted")
    }
    assert conditions == {
        each["type"]: (each["status"], each["reason"], each.get("message", "")) for each in expected["conditions"]
    }
    stats = victim.status.scheduling_stats
    assert kueueforms.compact(decoding.document(stats) if stats is not None else {}) == kueueforms.compact(
        expected.get("schedulingStats", {})
    )


def _info(document: dict[str, Any], queue: str, settings: Settings) -> WorkloadInfo:
    workload = kueueforms.read_workload(document)
    admission = workload.status.admission
    name = queue or (admission.cluster_queue if admission is not None else "")
    return WorkloadInfo(
        workload, requests.total(workload, counting=requests.Counting(gates=settings.gates)), name, settings=settings
    )


def _assignment(recorded: dict[str, Any], info: WorkloadInfo) -> Assignment:
    return Assignment(
        tuple(
            PodSetAssignment(
                each["name"],
                totals.requests,
                each["count"],
                {
                    resource: FlavorAssignment(flavor["name"], _MODES[flavor["mode"]])
                    for resource, flavor in each["flavors"].items()
                },
                ("insufficient",),
            )
            for each, totals in zip(recorded["podSets"], info.pod_sets, strict=True)
        )
    )


def _usage(snapshot: Snapshot) -> dict[str, dict[str, int]]:
    return {
        name: {str(key): amount for key, amount in queue.node.usage.items() if amount}
        for name, queue in snapshot.queues.items()
    }


def _document(target: preemption.Target) -> tuple[str, str, str]:
    return target.info.key, target.reason, target.queue.name
