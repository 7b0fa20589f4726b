"""Slices of elastic jobs, and the gated pods that they have quota for."""

from typing import Any

import pytest

from drachma.api import meta, pod
from drachma.queueing.jobs import elastic
from drachma.queueing.jobs.interface import with_metadata
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.workloads import podsetinfo

_REPLACED = ("WorkloadSliceReplaced", "Replaced to accommodate a new workload slice")
_OUT_OF_SYNC = ("OutOfSync", "The workload slice is out of sync with its parent job")


def _slice(
    name: str, age: int, *, replaces: str = "", reserved: bool = False, evicted: bool = False
) -> workload.Workload:
    """Return a slice that is older than those with a smaller age."""
    kinds = [kind for kind, holds in (("QuotaReserved", reserved), ("Evicted", evicted)) if holds]
    document: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": name,
            "creationTimestamp": f"2026-01-01T00:{59 - age:02}:00Z",
            "annotations": {workload.REPLACES: f"ns/{replaces}"} if replaces else {},
        },
        "spec": {"podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": []}}}]},
        "status": {"conditions": [{"type": kind, "status": "True", "reason": kind, "message": ""} for kind in kinds]},
    }
    return decoding.decode(document, workload.Workload)


@pytest.mark.parametrize(
    ("slices", "want_selected", "want_retired"),
    [
        pytest.param(
            [_slice("a", 2, reserved=True), _slice("b", 1, replaces="a")],
            "b",
            {},
            id="one-that-waits-to-replace-the-one-that-runs",
        ),
        pytest.param(
            [_slice("a", 2, reserved=True), _slice("b", 1, replaces="a", reserved=True)],
            "b",
            {"a": _REPLACED},
            id="one-that-was-admitted-and-the-other-not-finished",
        ),
        pytest.param(
            [_slice("a", 3, reserved=True), _slice("b", 2, replaces="a"), _slice("c", 1, replaces="a", reserved=True)],
            "c",
            {"a": _REPLACED, "b": _OUT_OF_SYNC},
            id="of-two-that-replace-one-that-which-has-quota",
        ),
        pytest.param(
            [_slice("a", 2, reserved=True, evicted=True), _slice("b", 1, replaces="a")],
            "b",
            {"a": _REPLACED},
            id="an-evicted-one-gives-its-quota-back",
        ),
        pytest.param([_slice("a", 2), _slice("b", 1)], "b", {"a": _OUT_OF_SYNC}, id="the-latest-where-none-has-quota"),
        pytest.param(
            [_slice("a", 2, evicted=True), _slice("b", 1, evicted=True)],
            None,
            {"a": _OUT_OF_SYNC, "b": _OUT_OF_SYNC},
            id="none-where-all-are-evicted",
        ),
    ],
)
def test_one_slice_follows_the_job(
    slices: list[workload.Workload], want_selected: str | None, want_retired: dict[str, tuple[str, str]]
) -> None:
    selected, retired = elastic.select_slice(slices)

    assert (selected.metadata.name if selected is not None else None) == want_selected
    assert {each.workload.metadata.name: (each.reason, each.message) for each in retired} == want_retired


def test_slices_of_one_second_come_in_the_order_of_their_uids() -> None:
    one, other = _slice("b", 1), _slice("a", 1)

    assert elastic.unfinished([one, other]) == [other, one]


def test_a_new_slice_has_the_name_of_the_first_one_and_says_which_it_replaces() -> None:
    first = elastic.slice_annotations("one", [])
    running = _slice("one", 1, reserved=True)
    named = with_metadata(running, annotations={workload.SLICE_NAME: "zero"})

    assert first == {workload.ELASTIC: "true", workload.SLICE_NAME: "one"}
    assert elastic.slice_annotations("two", [running])[workload.SLICE_NAME] == "one"
    assert elastic.slice_annotations("two", [named]) == {
        workload.ELASTIC: "true",
        workload.SLICE_NAME: "zero",
        workload.REPLACES: "ns/one",
    }
    with pytest.raises(elastic.TooManySlicesError, match="unexpected workload-slices count: 2"):
        elastic.slice_annotations("three", [running, _slice("two", 0, replaces="one")])


def _pod(name: str, *, gated: bool, phase: str = "Pending", pod_set: str = "main") -> pod.Pod:
    gates = (pod.PodSchedulingGate(name=elastic.GATE),) if gated else ()
    return pod.Pod(
        metadata=meta.ObjectMeta(name=name, labels={podsetinfo.POD_SET_LABEL: pod_set}),
        spec=pod.PodSpec(scheduling_gates=gates),
        status=pod.PodStatus(phase=phase),
    )


def _workload(**counts: int) -> workload.Workload:
    sets = tuple(workload.PodSet(name=name, count=count) for name, count in counts.items())
    return workload.Workload(spec=workload.WorkloadSpec(pod_sets=sets))


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param([_pod("b", gated=True), _pod("a", gated=True)], ["a", "b"], id="all-of-them-by-name"),
        pytest.param(
            [_pod("c", gated=True), _pod("b", gated=True), _pod("a", gated=True)], ["a", "b"], id="no-more-than-quota"
        ),
        pytest.param(
            [_pod("a", gated=False), _pod("b", gated=True), _pod("c", gated=True)], ["b"], id="running-pods-count-first"
        ),
        pytest.param(
            [_pod("a", gated=False, phase="Succeeded"), _pod("b", gated=True), _pod("c", gated=True)],
            ["b", "c"],
            id="terminated-pods-need-no-quota",
        ),
        pytest.param([_pod("a", gated=False), _pod("b", gated=False), _pod("c", gated=True)], [], id="none-is-left"),
        pytest.param([_pod("a", gated=True, pod_set="workers")], [], id="of-a-set-without-quota"),
    ],
)
def test_pods_are_ungated_as_far_as_there_is_quota(pods: list[pod.Pod], want: list[str]) -> None:
    assert [each.metadata.name for each in elastic.pods_to_ungate(_workload(main=2), pods)] == want


def test_a_template_is_gated_once() -> None:
    template = {"spec": {"schedulingGates": [{"name": "own"}], "containers": []}}
    once = elastic.with_gate(template)

    assert once["spec"]["schedulingGates"] == [{"name": "own"}, {"name": "kueue.x-k8s.io/elastic-job"}]
    assert elastic.with_gate(once) == once
