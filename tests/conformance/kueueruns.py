"""Admission of recorded cases of Kueue: an admitter with their objects, and its answers in the recorded form."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from drachma.api import limitrange, namespace, node, pod
from drachma.queueing import conditions
from drachma.queueing.admission.admitter import Admitter, CycleReport
from drachma.queueing.admission.topologyplacement import needs_second_pass
from drachma.queueing.configuration import configuration
from drachma.queueing.devices.mappings import DeviceMappings
from drachma.queueing.devices.requests import DeviceRequests
from drachma.queueing.kinds import (
    admissioncheck,
    clusterqueue,
    decoding,
    localqueue,
    resourceflavor,
    topology,
    workload,
)
from drachma.queueing.workloads import admissibility, podadjustment, transitions, workloadstate
from drachma.queueing.workloads.requests import Counting
from drachma.queueing.workloads.settings import Settings
from drachma.queueing.workloads.workloadevents import Event
from drachma.values import quantity
from tests.conformance import kueueforms, vectors

_STEP = timedelta(seconds=30)
_LONG = timedelta(hours=1)
_WAIT = re.compile(r"(was -?)\d+s")


class Run:
    """An admitter and all workloads, as a recorded case has them."""

    def __init__(self, case: vectors.Line) -> None:
        recorded = self._recorded = case["input"]
        gates = kueueforms.switched(case)
        mappings = DeviceMappings.of(kueueforms.read_mappings(recorded.get("deviceClassMappings", [])))
        settings = Settings(
            gates=gates, fair_sharing=recorded.get("fairSharing", False), binary=mappings.binary_resources
        )
        self.now = msgspec.convert(recorded["now"], datetime)
        transformations = [
            decoding.decode(each, configuration.ResourceTransformation)
            for each in recorded.get("resourceTransformations", [])
        ]
        self.admitter = Admitter(settings=settings, counting=Counting.of(transformations=transformations, gates=gates))
        for document in recorded.get("nodes", []):
            self.admitter.set_node(decoding.decode(document, node.Node))
        for document in recorded.get("pods", []):
            each_pod = decoding.decode(document, pod.Pod)
            self.admitter.set_pod(f"{each_pod.metadata.namespace}/{each_pod.metadata.name}", each_pod)
        limits: dict[str, list[limitrange.LimitRange]] = {}
        for document in recorded.get("objects", []):
            if document["kind"] == "LimitRange":
                item = decoding.decode(document, limitrange.LimitRange)
                limits.setdefault(item.metadata.namespace, []).append(item)
        places = [decoding.decode(each, namespace.Namespace) for each in recorded["namespaces"]]
        self.admitter.set_places(
            {
                each.metadata.name: admissibility.Place(
                    each.metadata.labels, podadjustment.summarize(limits.get(each.metadata.name, []))
                )
                for each in places
            }
        )
        self.admitter.set_queues(
            [decoding.decode(each, clusterqueue.ClusterQueue) for each in recorded.get("clusterQueues", [])],
            cohorts=[decoding.decode(each, clusterqueue.Cohort) for each in recorded.get("cohorts", [])],
            local_queues=[decoding.decode(each, localqueue.LocalQueue) for each in recorded.get("localQueues", [])],
            flavors=[
                decoding.decode(each, resourceflavor.ResourceFlavor) for each in recorded.get("resourceFlavors", [])
            ],
            topologies=[decoding.decode(each, topology.Topology) for each in recorded.get("topologies", [])],
            checks=[
                decoding.decode(each, admissioncheck.AdmissionCheck) for each in recorded.get("admissionChecks", [])
            ],
        )
        read = [kueueforms.read_workload(each) for each in recorded["workloads"]]
        self.workloads = {workloadstate.key(each): each for each in read}
        self._queued: set[str] = set()
        for key, each in self.workloads.items():
            if workloadstate.has_reservation(each):
                self.admitter.hold(each)
                if needs_second_pass(each):
                    self.admitter.second_passes.put(key, self.now - _LONG)
            else:
                self._queued.add(key)
                self.admitter.enqueue(each, self.now, devices=_devices(recorded, key))

    def cycle(self) -> CycleReport | None:
        report = self.admitter.run_cycle(self.now)
        if report is not None:
            self.workloads.update(report.workloads)
        return report

    def left(self) -> dict[str, list[str]]:
        waiting = {name: sorted(queue.active) for name, queue in self.admitter.queues.items()}
        return {name: keys for name, keys in waiting.items() if keys}

    def parked(self) -> dict[str, list[str]]:
        waiting = {name: list(queue.parked) for name, queue in self.admitter.queues.items()}
        return {name: keys for name, keys in waiting.items() if keys}

    def retry_all(self) -> None:
        """What was asked for when the queues were made and comes after the first cycle."""
        for name in self.admitter.queues:
            self.admitter.retry([name], self.now)

    def put_back_evicted(self) -> None:
        """What the workload controller does with evicted workloads, in two steps of time."""
        self.now += _STEP
        for key, each in list(self.workloads.items()):
            evicted = conditions.find(each.status.conditions, conditions.EVICTED)
            if evicted is None or evicted.status != "True" or each.status.admission is None:
                continue
            queue = each.status.admission.cluster_queue
            after = transitions.requeued(each, "True", reason=evicted.reason, message=evicted.message)
            after = transitions.unreserve(
                after,
                reason="PendingEvaluation",
                message=evicted.message,
                now=self.now,
                gates=self.admitter.settings.gates,
            )
            self.workloads[key] = after
            self.admitter.release(key)
            if key in self._queued:
                # Where a workload that never waited goes, the recorder's queues did not know.
                self.admitter.retry([queue], self.now)
            self._queued.add(key)
            self.admitter.enqueue(after, self.now, devices=_devices(self._recorded, key))
        self.now += _STEP


def _devices(recorded: dict[str, Any], key: str) -> DeviceRequests | None:
    charges = recorded.get("draRequestsPerPod", {}).get(key)
    if not charges:
        return None
    return DeviceRequests(
        {pod_set: {name: quantity.Quantity.parse(text) for name, text in of.items()} for pod_set, of in charges.items()}
    )


def record(run: Run, report: CycleReport | None, before: dict[str, workload.Workload]) -> dict[str, Any]:
    admitted: dict[str, Any] = {}
    preempted: dict[str, Any] = {}
    pending: dict[str, Any] = {}
    for key, after in (report.workloads if report is not None else {}).items():
        old = before[key]
        reserved = conditions.find(after.status.conditions, conditions.QUOTA_RESERVED)
        if workloadstate.has_reservation(after) and not workloadstate.has_reservation(old):
            admitted[key] = admission(after)
        elif workloadstate.is_evicted(after) and not workloadstate.is_evicted(old):
            evicted = conditions.find(after.status.conditions, conditions.EVICTED)
            cause = conditions.find(after.status.conditions, conditions.PREEMPTED)
            assert evicted is not None
            assert cause is not None
            preempted[key] = {
                "evictedReason": evicted.reason, "preemptedReason": cause.reason, "message": evicted.message,
            }  # fmt: skip
        elif reserved is not None and reserved.status == "False":
            earlier = conditions.find(old.status.conditions, conditions.QUOTA_RESERVED)
            if earlier is None or (earlier.reason, earlier.message) != (reserved.reason, reserved.message):
                pending[key] = {"reason": reserved.reason, "message": reserved.message}
    answer = {
        "admitted": admitted,
        "preempted": preempted,
        "pending": pending,
        "left": run.left(),
        "inadmissible": run.parked(),
    }
    slim: dict[str, Any] = kueueforms.compact(answer)
    return slim


def admission(of: workload.Workload) -> dict[str, Any]:
    assert of.status.admission is not None
    slim: dict[str, Any] = kueueforms.compact(decoding.document(of.status.admission))
    return slim


def statuses(workloads: Iterable[workload.Workload]) -> dict[str, Any]:
    statuses = {}
    for each in workloads:
        document = decoding.document(each.status)
        kept = {name: document.get(name) for name in ("conditions", "admission", "resourceRequests")}
        statuses[workloadstate.key(each)] = expected(kept)
    return statuses


def expected(status: dict[str, Any]) -> Any:
    told = [
        {name: condition.get(name, "") for name in ("type", "status", "reason", "message")}
        for condition in status.get("conditions") or []
    ]
    return kueueforms.compact({**status, "conditions": sorted(told, key=lambda condition: condition["type"])})


def event_rows(events: Iterable[Event]) -> list[tuple[str, str, str, str]]:
    return sorted((each.key, each.type, each.reason, without_duration(each.message)) for each in events)


def without_duration(message: str) -> str:
    return _WAIT.sub(r"\1<duration>", message)
