"""Kueue's recorded job controllers: what one look at a Job or at pods makes of them and of their workloads."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from drachma.queueing.configuration import durations
from drachma.queueing.jobs import jobreconcile, jobsettings, podgroup, podreconcile
from drachma.queueing.jobs.batchjob import BatchJob
from drachma.queueing.jobs.jobowners import Management
from drachma.queueing.jobs.jobworkload import Priorities, WorkloadRecord
from drachma.queueing.kinds import decoding, resourceflavor
from drachma.queueing.workloads.workloadevents import Event
from drachma.values import label_syntax
from tests.conformance import kueueforms, vectors


def _is_job(line: vectors.Line) -> bool:
    return bool(line["kind"] == "job")


@vectors.each("kueue-jobs", where=_is_job)
def test_kueue_jobs(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    job = recorded.get("job")
    key = recorded.get("reconcileKey") or job["metadata"]

    outcome = jobreconcile.reconcile(
        key["name"],
        None if job is None else BatchJob(job),
        _surroundings(recorded, key["namespace"]),
        msgspec.convert(recorded["now"], datetime),
        settings=_settings(case),
    )

    assert outcome.error == answer.get("error", "")
    assert _events(outcome.events) == _recorded_events(answer)
    assert kueueforms.compact(kueueforms.untimed(outcome.job)) == kueueforms.compact(answer.get("job"))
    documents = [outcome.workloads[name].document for name in sorted(outcome.workloads)]
    assert [_untimed(each) for each in documents] == _by_name(answer.get("workloads", []))


def _is_pod(line: vectors.Line) -> bool:
    return bool(line["kind"] == "pod")


@vectors.each("kueue-jobs", where=_is_pod)
def test_kueue_jobs_of_pods(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    pods = sorted(recorded.get("pods", []), key=lambda each: each["metadata"]["name"])
    settings = _settings(case)
    around = _surroundings(recorded, "ns")
    now = msgspec.convert(recorded["now"], datetime)
    group = podgroup.group_name(pods[0], settings.gates) if pods else ""
    key = recorded.get("reconcileKey") or {"name": "", "namespace": ""}
    if group or key["namespace"].startswith("group/"):
        outcome = podreconcile.reconcile_group("ns", group or key["name"], pods, around, now, settings=settings)
    else:
        name = key["name"] or pods[0]["metadata"]["name"]
        outcome = podreconcile.reconcile_pod(name, pods[0] if pods else None, around, now, settings=settings)

    assert outcome.error == answer.get("error", "")
    assert _events(outcome.events) == _recorded_events(answer)
    assert [_untimed(outcome.pods[name]) for name in sorted(outcome.pods)] == _by_name(answer.get("pods", []))
    documents = [outcome.workloads[name].document for name in sorted(outcome.workloads)]
    assert [_untimed(each) for each in documents] == _by_name(answer.get("workloads", []))


def _events(events: tuple[Event, ...]) -> list[tuple[str, ...]]:
    return sorted((each.key, each.type, each.reason, each.message) for each in events)


def _recorded_events(answer: Any) -> list[tuple[str, ...]]:
    return sorted((each["object"], each["type"], each["reason"], each["message"]) for each in answer.get("events", []))


def _by_name(documents: Any) -> list[Any]:
    return [_untimed(each) for each in sorted(documents, key=lambda each: each["metadata"]["name"])]


def _settings(case: vectors.Line) -> jobsettings.JobSettings:
    options = case["input"]["options"]
    retention = options.get("workloadRetentionPolicy", {}).get("afterDeactivatedByKueue")
    return jobsettings.JobSettings(
        management=Management(without_queue_name=options.get("manageJobsWithoutQueueName", False)),
        namespaces=label_syntax.parse(options.get("managedJobsNamespaceSelector", "")),
        waits_for_pods=options.get("waitForPodsReady", False),
        retention=None if retention is None else timedelta(microseconds=durations.nanoseconds(retention) / 1000),
        label_keys=options.get("labelKeysToCopy") or (),
        annotation_keys=options.get("annotationsToCopy") or (),
        gates=kueueforms.switched(case),
    )


def _surroundings(recorded: dict[str, Any], namespace: str) -> jobsettings.Surroundings:
    objects = recorded.get("objects", [])
    by_kind = {
        kind: {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}
        for kind in ("Namespace", "ResourceFlavor", "PriorityClass", "WorkloadPriorityClass")
    }
    jobs = [*recorded.get("otherJobs", []), *([recorded["job"]] if "job" in recorded else [])]
    pods = by_kind["PriorityClass"]
    return jobsettings.Surroundings(
        namespace_labels=by_kind["Namespace"].get(namespace, {"metadata": {}})["metadata"].get("labels", {}),
        workloads=list(_workloads(recorded)),
        owners={(each["apiVersion"], each["kind"], each["metadata"]["name"]): each for each in jobs},
        flavors={
            name: decoding.decode(each, resourceflavor.ResourceFlavor)
            for name, each in by_kind["ResourceFlavor"].items()
        },
        priorities=Priorities(
            of_workloads={name: each["value"] for name, each in by_kind["WorkloadPriorityClass"].items()},
            of_pods={name: each["value"] for name, each in pods.items()},
            defaults=[name for name, each in pods.items() if each.get("globalDefault")],
        ),
    )


def _workloads(recorded: dict[str, Any]) -> Iterator[WorkloadRecord]:
    """The workloads; where they are deleted first, those that somebody still holds."""
    for document in recorded.get("workloads", []):
        record = WorkloadRecord.of(document)
        if not recorded.get("deleteWorkloads"):
            yield record
        elif record.view.metadata.finalizers:
            yield record.with_metadata(deletionTimestamp=recorded["now"])


def _untimed(document: Any) -> Any:
    status = document.get("status", {})
    told = sorted(status.get("conditions", ()), key=lambda each: each["type"])
    return kueueforms.compact(kueueforms.untimed({**document, "status": {**status, "conditions": told}}))
