"""One look at a group of pods: what becomes of them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from drachma.queueing.jobs import podgroup, podreconcile, rolehash
from drachma.queueing.jobs.jobsettings import JobSettings, Surroundings
from drachma.queueing.jobs.jobworkload import Priorities, WorkloadRecord

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _ungated(name: str) -> dict[str, Any]:
    """A pod of a group of one that nobody has admitted, and that is not held back."""
    labels = {
        podgroup.FINALIZER: "true",
        "kueue.x-k8s.io/pod-group-name": "group",
        "kueue.x-k8s.io/queue-name": "team",
    }
    annotations = {podgroup.TOTAL: "1", "kueue.x-k8s.io/pod-group-fast-admission": "true"}
    metadata = {"name": name, "namespace": "ns", "uid": name, "labels": labels, "annotations": annotations}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "finalizers": [podgroup.FINALIZER]},
        "spec": {"containers": [{"name": "c"}]},
    }


def _around(*records: WorkloadRecord) -> Surroundings:
    return Surroundings(
        namespace_labels={},
        workloads=records,
        owners={},
        flavors={},
        priorities=Priorities(of_workloads={}, of_pods={}, defaults=[]),
    )


def test_pods_that_are_stopped_are_not_deleted_again_as_too_many() -> None:
    outcome = podreconcile.reconcile_group(
        "ns", "group", [_ungated("a"), _ungated("b")], _around(), _NOW, settings=JobSettings()
    )

    assert sorted((each.key, each.reason) for each in outcome.events) == [
        ("ns/a", "CreatedWorkload"),
        ("ns/a", "Stopped"),
        ("ns/b", "Stopped"),
    ]
    assert list(outcome.pods) == ["a"]


def test_a_pod_that_was_gone_when_it_was_stopped_is_not_told_of_as_deleted() -> None:
    pod = _ungated("a")
    del pod["metadata"]["finalizers"]
    message = "The workload is deactivated"
    evicted = {"type": "Evicted", "status": "True", "reason": "DeactivatedDueToRequeuingLimitExceeded"}
    times = {"message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    record = WorkloadRecord.of(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {
                "name": "group",
                "namespace": "ns",
                "annotations": {"kueue.x-k8s.io/is-group-workload": "true"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "a"}],
            },
            "spec": {
                "active": False,
                "queueName": "team",
                "podSets": [{"name": rolehash.of_pod(pod), "count": 1, "template": {"spec": pod["spec"]}}],
            },
            "status": {"conditions": [{**evicted, **times}]},
        }
    )

    outcome = podreconcile.reconcile_group(
        "ns", "group", [pod], _around(record), _NOW, settings=JobSettings(retention=timedelta())
    )

    assert [(each.key, each.reason, each.message) for each in outcome.events] == [("ns/a", "Stopped", message)]
    assert not outcome.pods
