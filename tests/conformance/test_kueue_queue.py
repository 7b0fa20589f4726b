"""Kueue's recorded queues: order, requeueing, retries, and the status of queues."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec

from drachma.queueing import conditions
from drachma.queueing.admission import cycleorder, pendingqueue, queuestatus
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.admission.pendingqueue import PendingQueue, RequeueReason
from drachma.queueing.admission.quotatree import QuotaTree
from drachma.queueing.kinds import admissioncheck, clusterqueue, decoding, localqueue, resourceflavor
from drachma.queueing.workloads import admissibility, requests
from drachma.queueing.workloads.requests import Usage
from drachma.queueing.workloads.settings import Settings
from drachma.queueing.workloads.workloadinfo import Attempt, WorkloadInfo
from drachma.values import label_syntax
from tests.conformance import kueueforms, vectors

_NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@vectors.each("kueue-queue")
def test_kueue_queue(case: vectors.Line) -> None:
    _REPLAYS[case["kind"]](case)


def _settings(case: vectors.Line, timestamp: str | None = None) -> Settings:
    order: Any = "Creation" if timestamp == "Creation" else "Eviction"
    return Settings(gates=kueueforms.switched(case), timestamp=order)


def _info(document: Any, settings: Settings, queue: str = "cq", attempt: Attempt | None = None) -> WorkloadInfo:
    workload = kueueforms.read_workload(document)
    return WorkloadInfo(workload, requests.total(workload), queue, settings=settings, attempt=attempt)


def _pending(strategy: str, settings: Settings) -> PendingQueue:
    spec = clusterqueue.ClusterQueueSpec(queueing_strategy=strategy)
    return PendingQueue(clusterqueue.ClusterQueue(spec=spec), settings=settings)


def _order(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    settings = _settings(case, recorded.get("podsReadyRequeuingTimestamp"))
    pending = _pending(recorded.get("queueingStrategy", "BestEffortFIFO"), settings)
    for document in (*recorded["workloads"], *recorded.get("inadmissible", [])):
        pending.put(_info(document, settings), _NOW)

    if "first" in answer:
        head = pending.pop()
        assert head is not None
        assert head.workload.metadata.name == answer["first"]
    else:
        assert [info.workload.metadata.name for info in pending.waiting()] == answer["order"]


def _operations(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    settings = _settings(case)
    pending = _pending("BestEffortFIFO", settings)
    takes = label_syntax.parse(recorded["namespaceSelector"])
    for document in recorded.get("add", []):
        pending.put(_info(document, settings), _NOW)
    for document in recorded["requeueInadmissible"]:
        pending.requeue(_info(document, settings), RequeueReason.GENERIC, _NOW)
    for document in recorded["requeueAdmissible"]:
        pending.requeue(_info(document, settings), RequeueReason.FAILED_AFTER_NOMINATION, _NOW)
    for document in recorded.get("update", []):
        pending.put(_info(document, settings), _NOW)
    for document in recorded.get("delete", []):
        pending.delete(_info(document, settings).key)
    if recorded["queueInadmissible"]:
        places = recorded["namespaces"]
        pending.retry(_NOW, takes=lambda namespace: takes.matches({"dep": places.get(namespace, "")}))

    assert sorted(pending.active) == sorted(answer.get("active", []))
    assert list(pending.parked) == sorted(answer.get("inadmissible", []))


def _requeue(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    settings = _settings(case)
    pending = _pending(recorded["queueingStrategy"], settings)
    attempt = None
    if "lastAssignment" in recorded:
        attempt = Attempt(tuple(recorded["lastAssignment"]["lastTriedFlavorIdx"]))
    info = _info({"metadata": {"name": "wl", "namespace": "ns"}}, settings, attempt=attempt)

    pending.requeue(info, RequeueReason(recorded["reason"]), _NOW)

    assert (info.key in pending.parked) == answer["inadmissible"]
    assert pending.is_sticky(info.key) == answer.get("sticky", False)


def _backoff(case: vectors.Line) -> None:
    workload = kueueforms.read_workload(case["input"]["workload"])
    now = msgspec.convert(case["input"]["now"], datetime)

    assert pendingqueue.is_backoff_over(workload, now) == case["answer"]["expired"]


def _admitter(case: vectors.Line) -> Admitter:
    recorded = case["input"]
    admitter = Admitter(settings=_settings(case))
    admitter.set_places({name: admissibility.Place() for name in ("", "default")})
    queues = [decoding.decode(each, clusterqueue.ClusterQueue) for each in recorded["clusterQueues"]]
    admitter.set_queues(
        [queue for queue in queues if not queue.metadata.name.startswith("pending-")],
        cohorts=[decoding.decode(each, clusterqueue.Cohort) for each in recorded.get("cohorts", [])],
        local_queues=[decoding.decode(each, localqueue.LocalQueue) for each in recorded["localQueues"]],
    )
    return admitter


def _heads(case: vectors.Line) -> None:
    admitter = _admitter(case)
    for document in case["input"].get("workloads", []):
        admitter.enqueue(kueueforms.read_workload(document), _NOW)

    heads = [pending.pop() for pending in admitter.queues.values()]

    names = sorted(head.workload.metadata.name for head in heads if head is not None)
    assert names == sorted(case["answer"]["heads"])


def _unpark(case: vectors.Line) -> None:
    admitter = _admitter(case)
    for document in case["input"]["workloads"]:
        workload = kueueforms.read_workload(document)
        queue = admitter.queue_of(workload)
        assert queue is not None
        admitter.queues[queue].requeue(admitter.info(workload, queue), RequeueReason.GENERIC, _NOW)

    moved = admitter.retry(["cq1"], _NOW)

    assert moved == case["answer"]["moved"]
    active = {name: sorted(queue.active) for name, queue in admitter.queues.items() if queue.active}
    assert active == case["answer"].get("active", {})
    parked = {name: sorted(queue.parked) for name, queue in admitter.queues.items() if queue.parked}
    assert parked == case["answer"].get("inadmissible", {})


class _Entry(msgspec.Struct):
    info: WorkloadInfo
    borrowing: int
    is_preemptor: bool
    usage: Usage = {}


def _entry_order(case: vectors.Line) -> None:
    recorded = case["input"]
    settings = _settings(case, recorded["ordering"].get("podsReadyRequeuingTimestamp", "Creation"))
    entries = []
    for each in recorded["entries"]:
        document = dict(each["workload"])
        name = document["metadata"]["name"]
        entries.append(_Entry(_info(document, settings), each["borrowing"], name.startswith("preemptor-")))

    def order(some: list[_Entry]) -> list[str]:
        return [entry.info.workload.metadata.name for entry in cycleorder.classical(some, settings)]

    assert order(entries) == case["answer"]["order"]
    # Whoever stands wrong is put right; equal ones stay as they are.
    assert any(order([second, first]) != order([first, second])[::-1] for first, second in pairwise(entries))


def _usage(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    if recorded.get("clusterQueue") is None:
        _check_without_queue(recorded, answer["localQueueUsage"])
        return
    queue = decoding.decode(recorded["clusterQueue"], clusterqueue.ClusterQueue)
    tree = QuotaTree([queue])
    holders = [_info(each, Settings()) for each in recorded.get("workloads", [])]
    held = queuestatus.usage(
        queue.spec,
        tree.queues[queue.metadata.name],
        [info for info in holders if info.has_reservation],
    )

    is_local = "localQueueUsage" in answer
    expected = answer["localQueueUsage"] if is_local else answer
    for part, flavors in (("reservedResources", held.reserved), ("admittedResources", held.admitted)):
        documents = [
            {
                "name": flavor.name,
                "resources": [
                    {"name": each.name, "total": str(each.total)}
                    | ({} if is_local else {"borrowed": str(each.borrowed)})
                    for each in flavor.resources
                ],
            }
            for flavor in flavors
        ]
        assert documents == expected[part]
    assert held.reserving_workloads == expected.get("reservingWorkloads", 0)
    assert held.admitted_workloads == expected.get("admittedWorkloads", 0)


def _check_without_queue(recorded: dict[str, Any], answer: dict[str, Any]) -> None:
    """Where the cluster queue does not exist, nobody waits and nobody holds anything."""
    admitter = Admitter()
    admitter.set_queues([], local_queues=[decoding.decode(recorded["localQueue"], localqueue.LocalQueue)])
    for document in recorded["workloads"]:
        workload = kueueforms.read_workload(document)
        admitter.enqueue(workload, _NOW)
        admitter.hold(workload)
        assert admitter.queue_of(workload) is None
    assert (not admitter.snapshot.holders) == (not kueueforms.compact(answer))


def _readiness(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    queues = [decoding.decode(each, clusterqueue.ClusterQueue) for each in recorded.get("clusterQueues", [])]
    queue = next((each for each in queues if each.metadata.name == recorded["clusterQueue"]), None)
    if recorded["terminate"] and queue is not None:
        queue = msgspec.structs.replace(
            queue, metadata=msgspec.structs.replace(queue.metadata, deletion_timestamp=_NOW)
        )
    flavors = [decoding.decode(each, resourceflavor.ResourceFlavor) for each in recorded.get("resourceFlavors", [])]
    checks = [decoding.decode(each, admissioncheck.AdmissionCheck) for each in recorded.get("admissionChecks", [])]

    ready = queuestatus.readiness(
        queue,
        flavors={each.metadata.name for each in flavors},
        checks={each.metadata.name: each for each in checks},
    )

    assert ready == (answer["active"], answer["reason"], answer["message"])


def _status(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    queue = decoding.decode(recorded["clusterQueue"], clusterqueue.ClusterQueue)
    if case["test"] == "TestLocalQueueReconcile":
        local = decoding.decode(recorded["localQueue"], localqueue.LocalQueue)
        is_active = conditions.is_true(queue.status.conditions, conditions.ACTIVE)
        ready = queuestatus.local_readiness(local, is_active=None if recorded["deleteClusterQueue"] else is_active)
        (condition,) = answer["localQueue"]["status"]["conditions"]
        assert (ready.reason, ready.message) == (condition["reason"], condition["message"])
        assert ready.is_active == (condition["status"] == "True")
        return
    is_known = recorded["inCache"] and recorded["inManager"]
    admitter = Admitter()
    admitter.set_queues(
        [queue] if is_known else [],
        local_queues=[decoding.decode(each, localqueue.LocalQueue) for each in recorded["localQueues"]],
    )
    added = [recorded["newWorkload"]] if "newWorkload" in recorded else []
    for document in (*recorded["workloads"], *added):
        admitter.enqueue(kueueforms.read_workload(document), _NOW)
    waiting = {name: len(pending) for name, pending in admitter.queues.items()}
    if not is_known:
        assert waiting == kueueforms.compact(answer.get("status", {}))
        return
    assert waiting == {queue.metadata.name: answer["status"]["pendingWorkloads"]}
    told = recorded["condition"]
    made = conditions.make(
        conditions.ACTIVE, told["status"], reason=told["reason"], message=told["message"], generation=1, now=_NOW
    )
    (condition,) = conditions.put(queue.status.conditions, made).conditions
    (expected,) = answer["status"]["conditions"]
    assert (condition.status, condition.reason, condition.message, condition.observed_generation) == (
        expected["status"], expected["reason"], expected["message"], expected["observedGeneration"],
    )  # fmt: skip


_REPLAYS = {
    "order": _order,
    "ops": _operations,
    "requeue": _requeue,
    "backoff": _backoff,
    "heads": _heads,
    "unpark": _unpark,
    "entry-order": _entry_order,
    "usage": _usage,
    "readiness": _readiness,
    "status": _status,
}
