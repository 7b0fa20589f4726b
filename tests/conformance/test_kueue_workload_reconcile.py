"""Kueue's recorded workload controller: what one look at a workload and its surroundings makes of it."""

import re
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import structs

from drachma.queueing import conditions
from drachma.queueing.admission import queuestatus
from drachma.queueing.configuration import durations
from drachma.queueing.devices import mappings as devicemappings
from drachma.queueing.devices import objects as deviceobjects
from drachma.queueing.devices import requests as devicerequests
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, workload
from drachma.queueing.lifecycle import workloadreconcile, workloadstep
from drachma.queueing.workloads import admissibility, requests, workloadstate
from drachma.queueing.workloads.settings import Settings
from tests.conformance import kueueforms, vectors

_WAIT = re.compile(r"was -?\d+s")


@vectors.each("kueue-workload-reconcile")
def test_kueue_workload_reconcile(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    settings = Settings(gates=kueueforms.switched(case))
    around = _around(recorded)

    before = kueueforms.read_workload(recorded["workload"])
    outcome = workloadreconcile.reconcile(
        before,
        around,
        msgspec.convert(recorded["now"], datetime),
        settings=settings,
    )
    if "patchError" in recorded and outcome.workload != before:
        outcome = workloadstep.Outcome(before, error=recorded["patchError"])

    after = outcome.workload
    assert (after is None) == (not answer.get("workload"))
    if after is not None:
        assert _state(after) == _recorded_state(answer["workload"])
    assert outcome.error == answer.get("error", "")
    assert outcome.requeue_after == timedelta(microseconds=durations.nanoseconds(answer.get("requeueAfter", "")) / 1000)
    events = sorted((each.key, each.type, each.reason, _duration(each.message)) for each in outcome.events)
    assert events == sorted(
        (each["object"], each["type"], each["reason"], each["message"]) for each in answer.get("events", [])
    )
    assert _queued(before, outcome, around, settings) == kueueforms.compact(answer.get("pendingInQueue", {}))


def _around(recorded: dict[str, Any]) -> workloadstep.Neighbourhood:
    queue = local = None
    if "localQueue" in recorded:
        local = decoding.decode(_deleted(recorded, "localQueue", "deleteLocalQueue"), localqueue.LocalQueue)
        local = local if local.metadata.name == recorded["workload"]["spec"].get("queueName") else None
    if "clusterQueue" in recorded:
        queue = decoding.decode(_deleted(recorded, "clusterQueue", "deleteClusterQueue"), clusterqueue.ClusterQueue)
        queue = queue if local is not None and local.spec.cluster_queue == queue.metadata.name else None
    documents = [
        *recorded.get("resourceClaimTemplates", []),
        *(each for each in recorded.get("objects", []) if each["apiVersion"].startswith("resource.k8s.io")),
    ]
    objects = deviceobjects.DeviceObjects.of(kueueforms.read_objects(documents))
    objects = structs.replace(objects, slices_error=recorded.get("listError", ""))
    retention = recorded.get("workloadRetention", {}).get("afterFinished")
    return workloadstep.Neighbourhood(
        local_queue=local,
        cluster_queue=queue,
        is_queue_active=_is_active(queue),
        places={"ns": admissibility.Place()},
        objects=objects,
        mappings=devicemappings.DeviceMappings.of(kueueforms.read_mappings(recorded["deviceClassMappings"] or [])),
        patience=_patience(recorded.get("waitForPodsReady")),
        retention=None if retention is None else _span(retention),
    )


def _deleted(recorded: dict[str, Any], name: str, flag: str) -> dict[str, Any]:
    """An object that somebody still holds where it was deleted."""
    document: dict[str, Any] = recorded[name]
    if not recorded[flag]:
        return document
    return {**document, "metadata": {**document["metadata"], "deletionTimestamp": recorded["now"]}}


def _is_active(queue: clusterqueue.ClusterQueue | None) -> bool:
    """Whether a queue admits workloads: Kueue's cache heard of those alone that were active, and of no flavor."""
    if queue is None or not conditions.is_true(queue.status.conditions, conditions.ACTIVE):
        return False
    return queuestatus.readiness(queue, flavors=(), checks={}).is_active


def _patience(settings: dict[str, Any] | None) -> workloadstep.Patience | None:
    if settings is None:
        return None
    recovery = settings.get("recoveryTimeout")
    return workloadstep.Patience(
        workloadstate.ReadyTimeouts(_span(settings.get("timeout", "")), None if recovery is None else _span(recovery)),
        settings.get("requeuingBackoffLimitCount"),
        settings.get("requeuingBackoffBaseSeconds", 0),
        int(_span(settings.get("requeuingBackoffMaxDuration", "")).total_seconds()),
    )


def _span(text: str) -> timedelta:
    return timedelta(microseconds=durations.nanoseconds(text) / 1000)


def _state(of: workload.Workload) -> Any:
    return _recorded_state(decoding.document(of))


def _recorded_state(document: dict[str, Any]) -> Any:
    status = kueueforms.untimed(document.get("status", {}))
    told = [
        {name: condition.get(name, "") for name in ("type", "status", "reason", "message")}
        for condition in status.pop("conditions", [])
    ]
    checks = status.pop("admissionChecks", [])
    return kueueforms.compact(
        {
            "status": status,
            "conditions": sorted(told, key=lambda condition: condition["type"]),
            "checks": checks,
            "active": document["spec"].get("active"),
            "finalizers": document["metadata"].get("finalizers"),
        }
    )


def _duration(message: str) -> str:
    return _WAIT.sub("was <duration>", message)


def _queued(
    before: workload.Workload,
    outcome: workloadstep.Outcome,
    around: workloadstep.Neighbourhood,
    settings: Settings,
) -> Any:
    """What waits afterwards: those who waited before, and whose devices have been counted since."""
    needs_devices = devicerequests.are_needed(before, around.objects, gates=settings.gates)
    of = outcome.workload if needs_devices and outcome.devices is not None else before
    if around.local_queue is None or around.cluster_queue is None or of is None:
        return {}
    if not workloadreconcile.is_admissible(of, settings.gates) or (needs_devices and outcome.devices is None):
        return {}
    total = requests.total(of, counting=requests.Counting(gates=settings.gates), devices=outcome.devices)
    documents = [{"name": each.name, "count": each.count, "requests": dict(each.requests)} for each in total]
    return kueueforms.compact({workloadstate.key(of): {"totalRequests": documents}})
