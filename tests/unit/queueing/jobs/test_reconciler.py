"""Reconcile of a Job: its workload follows it."""

from datetime import UTC, datetime
from typing import Any

from drachma.queueing import conditions
from drachma.queueing.integrations import kubeflow, ray
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
        priorities=Priorities(workload_classes={"high": 100}),
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


def test_a_ray_job_that_its_controller_refuses_gives_its_quota_back() -> None:
    document = {
        "metadata": {"name": "r", "namespace": "ns", "uid": "1", "labels": {"kueue.x-k8s.io/queue-name": "team"}},
        "spec": {"rayClusterSpec": {"headGroupSpec": {"template": _TEMPLATE}}},
        "status": {"jobDeploymentStatus": "ValidationFailed"},
    }
    job = ray.RayJob(document)
    held: dict[str, Any] = {
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"queueName": "team", "podSets": [{"name": "head", "count": 1, "template": _TEMPLATE}]},
        "status": {
            "admission": {"clusterQueue": "c", "podSetAssignments": []},
            "conditions": [{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""}],
        },
    }
    subject = construction.with_controller(decoding.decode(held, workload.Workload), job)
    environment = Environment(namespace_labels={}, pod_sets=lambda _: held["spec"]["podSets"], workloads=[subject])

    result = reconciler.reconcile(job, environment, _NOW, settings=JobSettings())

    after = result.workloads["ns/w"]
    condition = conditions.find(after.status.conditions, conditions.QUOTA_RESERVED)
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == ("False", "OnHold", "Job is on hold")
    assert after.status.admission is None
    without = Environment(namespace_labels={}, pod_sets=lambda _: ())
    assert not reconciler.reconcile(ray.RayJob(document), without, _NOW, settings=JobSettings()).workloads


def test_the_priority_class_of_the_run_policy_counts_before_those_of_pods() -> None:
    template = {"spec": {**_TEMPLATE["spec"], "priorityClassName": "low"}}
    document = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "1", "labels": {"kueue.x-k8s.io/queue-name": "team"}},
        "spec": {
            "runPolicy": {"suspend": True, "schedulingPolicy": {"priorityClass": "high"}},
            "pytorchReplicaSpecs": {"Master": {"template": template}},
        },
    }
    priorities = Priorities(pod_classes={"low": 1, "high": 2})
    environment = Environment(namespace_labels={}, pod_sets=lambda _: (), priorities=priorities)

    result = reconciler.reconcile(kubeflow.PyTorchJob(document), environment, _NOW, settings=JobSettings())

    (made,) = result.workloads.values()
    assert made.spec.priority == 2
