"""Groups of pods: who runs, when a group is over, and what gives quota back."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drachma.queueing.jobs import podgroup
from drachma.queueing.jobs.podgroup import GroupError, PodGroup
from drachma.queueing.workloads.podsetinfo import PodSetInfo

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _pod(name: str, *, phase: str = "", annotations: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    said = {podgroup.TOTAL: "2", **(annotations or {})}
    return {
        "metadata": {"name": name, "namespace": "ns", "annotations": said, **metadata},
        "spec": {"containers": [{"name": "c"}]},
        "status": {"phase": phase},
    }


def _group(*pods: dict[str, Any], releases_early: bool = False) -> PodGroup:
    return PodGroup(pods[0], pods, "group", now=_NOW, releases_early=releases_early)


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

    assert group.ending is not None
    assert group.ending.message == "Pods succeeded: 2/2."


def test_a_group_waits_for_the_replacement_of_a_pod_that_failed() -> None:
    assert _group(_pod("a", phase="Succeeded"), _pod("b", phase="Failed")).ending is None


def test_a_group_whose_pods_are_not_replaced_is_over_when_all_ended() -> None:
    final = {"kueue.x-k8s.io/retriable-in-group": "false"}

    assert _group(_pod("a", phase="Succeeded"), _pod("b", phase="Failed", annotations=final)).ending is not None


def test_a_serving_group_is_never_over_and_gives_nothing_back() -> None:
    serving = {"kueue.x-k8s.io/pod-group-serving": "true"}
    group = _group(*(_pod(name, phase="Succeeded", annotations=serving) for name in "ab"))

    assert group.ending is None
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
        _ = _group(_pod("a", annotations={podgroup.TOTAL: total})).total


def test_a_pod_that_starts_keeps_gates_of_others() -> None:
    gates = [{"name": "kueue.x-k8s.io/admission"}, {"name": "example.com/mine"}]
    pod = {**_pod("a"), "spec": {"schedulingGates": gates}}

    started = podgroup.started(pod, PodSetInfo(node_selector={"pool": "fast"}))

    assert started["spec"] == {"nodeSelector": {"pool": "fast"}, "schedulingGates": [{"name": "example.com/mine"}]}
    assert started["status"] == pod["status"]
