"""Groups of pods: active pods, completion, and reclaimable pods."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drachma.queueing.integrations import pods
from drachma.queueing.integrations.podgroup import GroupError, PodGroup
from drachma.queueing.jobs import reconciler
from drachma.queueing.jobs.settings import Environment, JobSettings
from drachma.queueing.kinds import decoding, workload

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _pod(name: str, *, phase: str = "", annotations: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    all_annotations = {pods.TOTAL: "2", **(annotations or {})}
    return {
        "metadata": {"name": name, "namespace": "ns", "annotations": all_annotations, **metadata},
        "spec": {"containers": [{"name": "c"}]},
        "status": {"phase": phase},
    }


def _group(*members: dict[str, Any], releases_early: bool = False) -> PodGroup:
    return PodGroup("ns", "group", members, is_group=True, now=_NOW, releases_early=releases_early)


@pytest.mark.parametrize(
    ("age", "releases_early", "is_active"),
    [
        pytest.param(10, False, True, id="within its grace period"),
        pytest.param(60, False, False, id="beyond it"),
        pytest.param(10, True, False, id="where deleted pods count no more"),
    ],
)
def test_a_running_pod_that_is_deleted(age: int, releases_early: bool, is_active: bool) -> None:
    deleted = (_NOW - timedelta(seconds=age)).isoformat()
    pod = _pod("a", phase="Running", deletionTimestamp=deleted, deletionGracePeriodSeconds=30)

    assert _group(pod, releases_early=releases_early).is_active is is_active


def test_a_group_is_over_when_as_many_pods_as_it_has_succeeded() -> None:
    group = _group(_pod("a", phase="Succeeded"), _pod("b", phase="Failed"), _pod("c", phase="Succeeded"))

    assert group.completion is not None
    assert group.completion.message == "Pods succeeded: 2/2."


def test_a_group_waits_for_the_replacement_of_a_pod_that_failed() -> None:
    assert _group(_pod("a", phase="Succeeded"), _pod("b", phase="Failed")).completion is None


def test_a_group_whose_pods_are_not_replaced_is_over_when_all_ended() -> None:
    final = {"kueue.x-k8s.io/retriable-in-group": "false"}

    assert _group(_pod("a", phase="Succeeded"), _pod("b", phase="Failed", annotations=final)).completion is not None


def test_a_serving_group_is_never_over_and_gives_nothing_back() -> None:
    serving = {"kueue.x-k8s.io/pod-group-serving": "true"}
    group = _group(*(_pod(name, phase="Succeeded", annotations=serving) for name in "ab"))

    assert group.completion is None
    assert group.reclaimable_pods == {}


@pytest.mark.parametrize(
    ("total", "problem"),
    [
        pytest.param("two", 'strconv.Atoi: parsing "two": invalid syntax', id="no number"),
        pytest.param("0", "group total count should be greater than zero", id="zero"),
    ],
)
def test_a_total_that_is_none_is_refused(total: str, problem: str) -> None:
    with pytest.raises(GroupError, match=problem):
        _ = _group(_pod("a", annotations={pods.TOTAL: total})).total


def _ungated(name: str) -> dict[str, Any]:
    """Return a pod of a group of one, neither admitted nor gated."""
    labels = {
        pods.FINALIZER: "true",
        "kueue.x-k8s.io/pod-group-name": "group",
        "kueue.x-k8s.io/queue-name": "team",
    }
    annotations = {pods.TOTAL: "1", "kueue.x-k8s.io/pod-group-fast-admission": "true"}
    metadata = {"name": name, "namespace": "ns", "uid": name, "labels": labels, "annotations": annotations}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "finalizers": [pods.FINALIZER]},
        "spec": {"containers": [{"name": "c"}]},
    }


def _reconcile(
    group: PodGroup, *documents: dict[str, Any], settings: JobSettings | None = None
) -> reconciler.ReconcileResult:
    environment = Environment(
        namespace_labels={},
        pod_sets=lambda subject: documents[0]["spec"]["podSets"],
        workloads=[decoding.decode(each, workload.Workload) for each in documents],
    )
    return reconciler.reconcile(group, environment, _NOW, settings=settings or JobSettings())


def test_pods_that_are_stopped_are_not_deleted_again_as_too_many() -> None:
    group = _group(_ungated("a"), _ungated("b"))
    result = _reconcile(group)

    assert sorted((each.key, each.reason) for each in result.events) == [
        ("ns/a", "CreatedWorkload"),
        ("ns/a", "Stopped"),
        ("ns/b", "Stopped"),
    ]
    assert list(group.pods) == ["a"]


def test_no_event_reports_the_deletion_of_a_pod_that_was_gone_when_it_was_stopped() -> None:
    pod = _ungated("a")
    del pod["metadata"]["finalizers"]
    message = "The workload is deactivated"
    evicted = {"type": "Evicted", "status": "True", "reason": "DeactivatedDueToRequeuingLimitExceeded"}
    times = {"message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    document = {
        "metadata": {
            "name": "group",
            "namespace": "ns",
            "annotations": {"kueue.x-k8s.io/is-group-workload": "true"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "a"}],
        },
        "spec": {
            "active": False,
            "queueName": "team",
            "podSets": [{"name": pods.role(pod), "count": 1, "template": {"spec": pod["spec"]}}],
        },
        "status": {"conditions": [{**evicted, **times}]},
    }

    group = _group(pod)
    result = _reconcile(group, document, settings=JobSettings(retention=timedelta()))

    assert [(each.key, each.reason, each.message) for each in result.events] == [("ns/a", "Stopped", message)]
    assert not group.pods
