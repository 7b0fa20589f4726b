"""Reconcile of a Job: its workload follows it."""

from datetime import UTC, datetime
from typing import Any

from drachma.queueing.integrations.batchjob import BatchJob
from drachma.queueing.jobs import construction, reconciler
from drachma.queueing.jobs.settings import Environment, JobSettings, Priorities
from drachma.queueing.kinds import decoding, workload

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_TEMPLATE = {"spec": {"containers": [{"name": "c"}], "restartPolicy": "Never"}}


def _job(*, parallelism: int, priority_class: str) -> BatchJob:
    labels = {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/priority-class": priority_class}
    return BatchJob(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "train", "namespace": "ns", "uid": "1", "labels": labels},
            "spec": {"suspend": True, "parallelism": parallelism, "template": _TEMPLATE},
        }
    )


def _workload(job: BatchJob, *, count: int, **spec: Any) -> workload.Workload:
    pod_set = {"name": "main", "count": count, "template": _TEMPLATE}
    document = {
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"queueName": "team", "podSets": [pod_set], **spec},
    }
    return construction.with_controller(decoding.decode(document, workload.Workload), job)


def _reconcile(job: BatchJob, subject: workload.Workload) -> reconciler.ReconcileResult:
    environment = Environment(
        namespace_labels={},
        pod_sets=lambda each: [{"name": "main", "count": each.spec.pod_sets[0].count, "template": _TEMPLATE}],
        workloads=[subject],
        priorities=Priorities(of_workloads={"high": 100}),
    )
    return reconciler.reconcile(job, environment, _NOW, settings=JobSettings())


def test_an_update_of_a_workload_that_fails_names_the_missing_class() -> None:
    job = _job(parallelism=2, priority_class="missing")

    result = _reconcile(job, _workload(job, count=1))

    missing = 'workloadpriorityclasses.kueue.x-k8s.io "missing" not found'
    assert result.error == f"can't construct workload for update: {missing}"


def test_a_class_of_another_group_is_not_a_class_of_workloads() -> None:
    job = _job(parallelism=1, priority_class="high")
    ref = {"group": "example.com", "kind": "WorkloadPriorityClass", "name": "low"}
    subject = _workload(job, count=1, priorityClassRef=ref, priority=5)

    result = _reconcile(job, subject)

    assert result.workloads == {"ns/w": subject}
    assert not result.events
