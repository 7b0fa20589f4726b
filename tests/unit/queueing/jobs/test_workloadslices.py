"""Which of an elastic job's workloads stay, and which follows the job."""

from typing import Any

import pytest

from drachma.queueing.jobs import workloadslices
from drachma.queueing.jobs.jobworkload import WorkloadRecord
from drachma.queueing.kinds import workload

_REPLACED = ("WorkloadSliceReplaced", "Replaced to accommodate a new workload slice")
_OUT_OF_SYNC = ("OutOfSync", "The workload slice is out of sync with its parent job")


def _slice(name: str, age: int, *, replaces: str = "", reserved: bool = False, evicted: bool = False) -> WorkloadRecord:
    """A slice that was made before those of a smaller age."""
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
    return WorkloadRecord.of(document)


@pytest.mark.parametrize(
    ("slices", "want_chosen", "want_retired"),
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
    slices: list[WorkloadRecord], want_chosen: str | None, want_retired: dict[str, tuple[str, str]]
) -> None:
    chosen, retired = workloadslices.chosen(slices)

    assert (chosen.view.metadata.name if chosen is not None else None) == want_chosen
    assert {each.record.view.metadata.name: (each.reason, each.message) for each in retired} == want_retired


def test_slices_of_one_second_come_in_the_order_of_their_uids() -> None:
    one, other = _slice("b", 1), _slice("a", 1)

    assert workloadslices.unfinished([one, other]) == [other, one]


def test_a_new_slice_has_the_name_of_the_first_one_and_says_which_it_replaces() -> None:
    first = workloadslices.annotations_for("one", [])
    running = _slice("one", 1, reserved=True)
    named = running.with_metadata(annotations={workload.SLICE_NAME: "zero"})

    assert first == {workload.ELASTIC: "true", workload.SLICE_NAME: "one"}
    assert workloadslices.annotations_for("two", [running])[workload.SLICE_NAME] == "one"
    assert workloadslices.annotations_for("two", [named]) == {
        workload.ELASTIC: "true",
        workload.SLICE_NAME: "zero",
        workload.REPLACES: "ns/one",
    }
    with pytest.raises(workloadslices.TooManySlicesError, match="unexpected workload-slices count: 2"):
        workloadslices.annotations_for("three", [running, _slice("two", 0, replaces="one")])
