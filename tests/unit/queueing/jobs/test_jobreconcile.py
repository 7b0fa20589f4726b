"""One look at a Job: what becomes of it and of its workload."""

from datetime import UTC, datetime
from typing import Any

from drachma.queueing.jobs import jobreconcile
from drachma.queueing.jobs.batchjob import BatchJob
from drachma.queueing.jobs.jobsettings import JobSettings, Surroundings
from drachma.queueing.jobs.jobworkload import Priorities, WorkloadRecord

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _job(*, parallelism: int, priority_class: str) -> BatchJob:
    labels = {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/priority-class": priority_class}
    template = {"spec": {"containers": [{"name": "c"}], "restartPolicy": "Never"}}
    return BatchJob(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "train", "namespace": "ns", "uid": "1", "labels": labels},
            "spec": {"suspend": True, "parallelism": parallelism, "template": template},
        }
    )


def _workload(job: BatchJob, *, count: int, **spec: Any) -> WorkloadRecord:
    pod_set = {"name": "main", "count": count, "template": job.document["spec"]["template"]}
    return WorkloadRecord.of(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {"name": "w", "namespace": "ns"},
            "spec": {"queueName": "team", "podSets": [pod_set], **spec},
        }
    ).owned_by(job)


def _look(job: BatchJob, record: WorkloadRecord) -> jobreconcile.Outcome:
    around = Surroundings(
        namespace_labels={},
        workloads=[record],
        owners={},
        flavors={},
        priorities=Priorities(of_workloads={"high": 100}, of_pods={}, defaults=[]),
    )
    return jobreconcile.reconcile("train", job, around, _NOW, settings=JobSettings())


def test_a_workload_that_cannot_follow_its_job_says_what_was_being_done() -> None:
    job = _job(parallelism=2, priority_class="missing")

    outcome = _look(job, _workload(job, count=1))

    missing = 'workloadpriorityclasses.kueue.x-k8s.io "missing" not found'
    assert outcome.error == f"can't construct workload for update: {missing}"


def test_a_class_of_another_group_is_not_a_class_of_workloads() -> None:
    job = _job(parallelism=1, priority_class="high")
    ref = {"group": "example.com", "kind": "WorkloadPriorityClass", "name": "low"}
    record = _workload(job, count=1, priorityClassRef=ref, priority=5)

    outcome = _look(job, record)

    assert outcome.workloads == {record.key: record}
    assert not outcome.events
