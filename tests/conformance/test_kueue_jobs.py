"""Kueue's recorded job controller: what one look at a Job makes of it and of its workloads."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from drachma.queueing import durations, jobreconcile
from drachma.queueing.batchjob import BatchJob
from drachma.queueing.jobowners import Management
from drachma.queueing.jobworkload import Priorities, WorkloadRecord
from drachma.queueing.kinds import decoding, resourceflavor
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
    assert sorted((each.key, each.type, each.reason, each.message) for each in outcome.events) == sorted(
        (each["object"], each["type"], each["reason"], each["message"]) for each in answer.get("events", [])
    )
    assert kueueforms.compact(outcome.job) == kueueforms.compact(answer.get("job"))
    documents = [outcome.workloads[name].document for name in sorted(outcome.workloads)]
    recorded_workloads = sorted(answer["workloads"], key=lambda each: each["metadata"]["name"])
    assert [_untimed(each) for each in documents] == [_untimed(each) for each in recorded_workloads]


def _settings(case: vectors.Line) -> jobreconcile.JobSettings:
    options = case["input"]["options"]
    retention = options["workloadRetentionPolicy"].get("afterDeactivatedByKueue")
    return jobreconcile.JobSettings(
        management=Management(without_queue_name=options["manageJobsWithoutQueueName"]),
        namespaces=label_syntax.parse(options["managedJobsNamespaceSelector"]),
        waits_for_pods=options["waitForPodsReady"],
        retention=None if retention is None else timedelta(microseconds=durations.nanoseconds(retention) / 1000),
        label_keys=options.get("labelKeysToCopy") or (),
        gates=kueueforms.switched(case),
    )


def _surroundings(recorded: dict[str, Any], namespace: str) -> jobreconcile.Surroundings:
    objects = recorded["objects"]
    by_kind = {
        kind: {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}
        for kind in ("Namespace", "ResourceFlavor", "PriorityClass", "WorkloadPriorityClass")
    }
    jobs = [*recorded.get("otherJobs", []), *([recorded["job"]] if "job" in recorded else [])]
    pods = by_kind["PriorityClass"]
    return jobreconcile.Surroundings(
        namespace_labels=by_kind["Namespace"][namespace]["metadata"].get("labels", {}),
        workloads=[WorkloadRecord.of(each) for each in recorded["workloads"]],
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


def _untimed(document: Any) -> Any:
    status = document.get("status", {})
    told = [{key: each[key] for key in each if key != "lastTransitionTime"} for each in status.get("conditions", ())]
    slim = {**document, "status": {**status, "conditions": sorted(told, key=lambda each: each["type"])}}
    return kueueforms.compact(slim)
