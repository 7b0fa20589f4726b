"""Kueue's recorded job controllers: what one look at a Job or at pods makes of them and of their workloads."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from drachma.queueing.configuration import durations
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.integrations import pods
from drachma.queueing.integrations.batchjob import BatchJob
from drachma.queueing.integrations.podgroup import PodGroup
from drachma.queueing.jobs import reconciler
from drachma.queueing.jobs.reconciler import ReconcileResult
from drachma.queueing.jobs.settings import Environment, JobSettings, Management, Priorities
from drachma.queueing.kinds import decoding, resourceflavor, workload
from drachma.queueing.workloads import workloadstate
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

    subject = BatchJob.missing(key["namespace"], key["name"]) if job is None else BatchJob(job)
    result = reconciler.reconcile(
        subject,
        _environment(recorded, key["namespace"]),
        msgspec.convert(recorded["now"], datetime),
        settings=_settings(case),
    )

    assert result.error == answer.get("error", "")
    assert _events(result.events) == _recorded_events(answer)
    document = None if subject.is_gone else subject.document
    assert kueueforms.compact(kueueforms.untimed(document)) == kueueforms.compact(answer.get("job"))
    assert _workload_documents(result, recorded) == _by_name(answer.get("workloads", []))


def _is_pod(line: vectors.Line) -> bool:
    return bool(line["kind"] == "pod")


@vectors.each("kueue-jobs", where=_is_pod)
def test_kueue_jobs_of_pods(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    documents = sorted(recorded.get("pods", []), key=lambda each: each["metadata"]["name"])
    settings = _settings(case)
    now = msgspec.convert(recorded["now"], datetime)
    group = _group_name(documents[0], settings) if documents else ""
    key = recorded.get("reconcileKey") or {"name": "", "namespace": ""}
    is_group = bool(group) or key["namespace"].startswith("group/")
    subject = PodGroup(
        "ns",
        group or key["name"] or documents[0]["metadata"]["name"],
        documents if is_group else documents[:1],
        is_group=is_group,
        now=now,
        releases_early=settings.gates.on(Gate.FAST_QUOTA_RELEASE),
    )
    result = reconciler.reconcile(subject, _environment(recorded, "ns"), now, settings=settings)

    assert result.error == answer.get("error", "")
    assert _events(result.events) == _recorded_events(answer)
    assert [_untimed(subject.pods[name]) for name in sorted(subject.pods)] == _by_name(answer.get("pods", []))
    assert _workload_documents(result, recorded) == _by_name(answer.get("workloads", []))


def _group_name(pod: dict[str, Any], settings: JobSettings) -> str:
    metadata = pod["metadata"]
    return pods.group_name(metadata.get("labels") or {}, metadata.get("annotations") or {}, settings.gates)


def _workload_documents(result: ReconcileResult, recorded: dict[str, Any]) -> list[Any]:
    """Return the workloads as the component would write them, with the pod sets that they keep or get."""
    pod_sets = {**_recorded_pod_sets(recorded), **result.new_pod_sets}
    head = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"}
    documents = []
    for key, subject in sorted(result.workloads.items()):
        document = {**head, **decoding.document(subject)}
        document["spec"] = {**document["spec"], "podSets": pod_sets[key]}
        documents.append(_untimed(document))
    return documents


def _recorded_pod_sets(recorded: dict[str, Any]) -> dict[str, Sequence[Any]]:
    return {
        f"{each['metadata'].get('namespace', '')}/{each['metadata']['name']}": each["spec"].get("podSets") or ()
        for each in recorded.get("workloads", [])
    }


def _events(events: tuple[Event, ...]) -> list[tuple[str, ...]]:
    return sorted((each.key, each.type, each.reason, each.message) for each in events)


def _recorded_events(answer: Any) -> list[tuple[str, ...]]:
    return sorted((each["object"], each["type"], each["reason"], each["message"]) for each in answer.get("events", []))


def _by_name(documents: Any) -> list[Any]:
    return [_untimed(each) for each in sorted(documents, key=lambda each: each["metadata"]["name"])]


def _settings(case: vectors.Line) -> JobSettings:
    options = case["input"]["options"]
    retention = options.get("workloadRetentionPolicy", {}).get("afterDeactivatedByKueue")
    return JobSettings(
        management=Management(without_queue_name=options.get("manageJobsWithoutQueueName", False)),
        namespaces=label_syntax.parse(options.get("managedJobsNamespaceSelector", "")),
        waits_for_pods=options.get("waitForPodsReady", False),
        retention=None if retention is None else timedelta(microseconds=durations.nanoseconds(retention) / 1000),
        label_keys=options.get("labelKeysToCopy") or (),
        annotation_keys=options.get("annotationsToCopy") or (),
        gates=kueueforms.switched(case),
    )


def _environment(recorded: dict[str, Any], namespace: str) -> Environment:
    objects = recorded.get("objects", [])
    by_kind = {
        kind: {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}
        for kind in ("Namespace", "ResourceFlavor", "PriorityClass", "WorkloadPriorityClass")
    }
    jobs = [*recorded.get("otherJobs", []), *([recorded["job"]] if "job" in recorded else [])]
    pod_classes = by_kind["PriorityClass"]
    pod_sets = _recorded_pod_sets(recorded)
    return Environment(
        namespace_labels=by_kind["Namespace"].get(namespace, {"metadata": {}})["metadata"].get("labels", {}),
        pod_sets=lambda subject: pod_sets[workloadstate.key(subject)],
        workloads=list(_workloads(recorded)),
        owners={(each["apiVersion"], each["kind"], each["metadata"]["name"]): each for each in jobs},
        flavors={
            name: decoding.decode(each, resourceflavor.ResourceFlavor)
            for name, each in by_kind["ResourceFlavor"].items()
        },
        priorities=Priorities(
            workload_classes={name: each["value"] for name, each in by_kind["WorkloadPriorityClass"].items()},
            pod_classes={name: each["value"] for name, each in pod_classes.items()},
            defaults=[name for name, each in pod_classes.items() if each.get("globalDefault")],
        ),
    )


def _workloads(recorded: dict[str, Any]) -> Iterator[workload.Workload]:
    """Return the workloads; if the case deletes them first, those that a finalizer keeps."""
    for document in recorded.get("workloads", []):
        metadata = document["metadata"]
        if not recorded.get("deleteWorkloads"):
            yield decoding.decode(document, workload.Workload)
        elif metadata.get("finalizers"):
            deleted = {**document, "metadata": {**metadata, "deletionTimestamp": recorded["now"]}}
            yield decoding.decode(deleted, workload.Workload)


def _untimed(document: Any) -> Any:
    status = document.get("status", {})
    told = sorted(status.get("conditions", ()), key=lambda each: each["type"])
    return kueueforms.compact(kueueforms.untimed({**document, "status": {**status, "conditions": told}}))
