"""The checker of the restart matrix finds planted violations, and nothing in a good history."""

import pathlib
from typing import Any

import pytest
from bench.soak import history, invariants


def _event(kind: str, uid: str, revision: int, *, type_: str = "MODIFIED", **parts: Any) -> history.Event:
    metadata = {"name": uid, "namespace": "default", "uid": uid, "resourceVersion": str(revision)}
    metadata |= parts.pop("metadata", {})
    return history.Event(kind, type_, {"metadata": metadata, **parts})


def _claim(uid: str, revision: int, *devices: str, type_: str = "MODIFIED", **result: Any) -> history.Event:
    results = [{"driver": "gpu", "pool": "n", "device": device, **result} for device in devices]
    status = {"allocation": {"devices": {"results": results}}} if devices else {}
    return _event("resourceclaims", uid, revision, type_=type_, status=status)


def _queue(name: str, revision: int, gpus: int, *, cohort: str = "", limit: str | None = None) -> history.Event:
    entry = {"name": "gpus", "nominalQuota": str(gpus)} | ({"borrowingLimit": limit} if limit is not None else {})
    group = {"coveredResources": ["gpus"], "flavors": [{"name": "default", "resources": [entry]}]}
    return _event("clusterqueues", name, revision, spec={"cohortName": cohort, "resourceGroups": [group]})


def _workload(
    uid: str, revision: int, gpus: int, *, queue: str = "team", condition: str = "QuotaReserved", done: int = 0
) -> history.Event:
    assignment = {"name": "main", "count": gpus, "resourceUsage": {"gpus": str(gpus)}}
    conditions = [{"type": kind, "status": "True"} for kind in {"QuotaReserved", condition}]
    status = {
        "conditions": conditions,
        "admission": {"clusterQueue": queue, "podSetAssignments": [assignment]},
        "reclaimablePods": [{"name": "main", "count": done}],
    }
    return _event("workloads", uid, revision, status=status)


GOOD = [
    pytest.param([_claim("a", 1, "gpu-0"), _claim("b", 2, "gpu-1")], id="two-claims-two-devices"),
    pytest.param([_claim("a", 1, "gpu-0"), _claim("a", 2), _claim("b", 3, "gpu-0")], id="device-given-back"),
    pytest.param(
        [_claim("a", 1, "gpu-0"), _claim("a", 2, type_="DELETED"), _claim("b", 3, "gpu-0")], id="claim-deleted"
    ),
    pytest.param([_claim("a", 1, "gpu-0"), _claim("b", 2, "gpu-0", adminAccess=True)], id="administrative-access"),
    pytest.param([_claim("a", 1, "gpu-0", shareID="x"), _claim("b", 2, "gpu-0", shareID="y")], id="shares"),
    pytest.param([_queue("team", 1, 2), _workload("a", 1, 1), _workload("b", 2, 1)], id="quota-used-up"),
    pytest.param(
        [_queue("team", 1, 2), _workload("a", 1, 2), _workload("a", 2, 2, condition="Finished"), _workload("b", 3, 2)],
        id="quota-of-a-finished-workload",
    ),
    pytest.param([_queue("team", 1, 2), _workload("a", 1, 2, done=1), _workload("b", 2, 1)], id="pods-that-finished"),
    pytest.param(
        [_queue("team", 1, 1, cohort="c"), _queue("other", 2, 1, cohort="c"), _workload("a", 1, 2)], id="borrowed"
    ),
    pytest.param(
        [history.Write("configmaps", "m", 4), _event("configmaps", "m", 4)], id="write-acknowledged-before-it-is-seen"
    ),
    pytest.param(
        [_event("configmaps", "m", 4), history.Write("configmaps", "m", 4)], id="write-seen-before-acknowledged"
    ),
    pytest.param(
        [history.Delete("pods", "p"), _event("pods", "p", 4, metadata={"deletionTimestamp": "now"})], id="delete-begun"
    ),
    pytest.param([history.Write("pods", "p", 4), history.Gap("pods", 5)], id="write-inside-a-gap"),
]


@pytest.mark.parametrize("entries", GOOD)
def test_a_good_history_has_no_violations(entries: list[history.Entry]) -> None:
    assert invariants.check_history(entries) == []


BAD = [
    pytest.param([_claim("a", 1, "gpu-0"), _claim("b", 2, "gpu-0")], "device allocated twice", id="device-twice"),
    pytest.param(
        [_claim("a", 1, "gpu-0"), _claim("b", 2, "gpu-1"), _claim("b", 3, "gpu-1", "gpu-0")],
        "device allocated twice",
        id="device-added-later",
    ),
    pytest.param(
        [_queue("team", 1, 2), _workload("a", 1, 1), _workload("b", 2, 2)], "quota exceeded", id="quota-of-a-queue"
    ),
    pytest.param(
        [
            _queue("team", 1, 1, cohort="c"),
            _queue("other", 2, 1, cohort="c"),
            _workload("a", 1, 2),
            _workload("b", 2, 1, queue="other"),
        ],
        "quota exceeded",
        id="quota-of-a-cohort",
    ),
    pytest.param(
        [
            _queue("team", 1, 1, cohort="c", limit="0"),
            _queue("other", 2, 1, cohort="c"),
            _workload("a", 1, 2),
        ],
        "quota exceeded",
        id="borrowing-limit",
    ),
    pytest.param(
        [history.Write("configmaps", "m", 4), _event("configmaps", "m", 5)], "lost write", id="acknowledged-write-lost"
    ),
    pytest.param([_event("pods", "p", 3), history.Delete("pods", "p")], "lost delete", id="acknowledged-delete-lost"),
    pytest.param([history.Gap("pods", 5), history.Write("pods", "p", 6)], "lost write", id="write-after-a-gap"),
    pytest.param([_event("pods", "p", 4), _event("pods", "q", 4)], "revision went back", id="revision-twice"),
]


@pytest.mark.parametrize(("entries", "want_rule"), BAD)
def test_a_planted_violation_is_found(entries: list[history.Entry], want_rule: str) -> None:
    assert [violation.rule for violation in invariants.check_history(entries)] == [want_rule]


def test_quota_that_is_exceeded_again_is_told_again() -> None:
    checker = invariants.Checker()
    steps = [
        _queue("team", 1, 1),
        _workload("a", 1, 2),
        _workload("a", 2, 2),
        _workload("a", 3, 1),
        _workload("a", 4, 2),
    ]
    assert [len(checker.feed(step)) for step in steps] == [0, 1, 0, 0, 1]


def test_what_is_left_is_described() -> None:
    checker = invariants.Checker()
    checker.feed(_event("pods", "p", 1, metadata={"deletionTimestamp": "noon"}, status={"phase": "Running"}))
    checker.feed(_event("pods", "q", 2))
    checker.feed(_event("configmaps", "m", 1))
    assert checker.unfinished(ignored=["q"]) == {"p": "pods default/p, Running, deletion asked for at noon"}


def test_a_history_comes_back_from_its_file(tmp_path: pathlib.Path) -> None:
    entries: list[history.Entry] = [
        _claim("a", 1, "gpu-0"),
        history.Write("pods", "p", 1, 0.5),
        history.Gap("pods", 2),
        history.Mark("x"),
    ]
    path = tmp_path / "history.jsonl.gz"
    record = history.HistoryFile(path)
    for entry in entries:
        record.add(entry)
    record.close()
    assert list(history.read_history(path)) == entries


def test_a_reduced_object_keeps_what_invariants_need() -> None:
    claim = _claim("a", 1, "gpu-0").document
    full = {**claim, "metadata": {**claim["metadata"], "managedFields": [{}]}, "spec": {"devices": {}, "nodeName": "n"}}
    assert history.reduce_document(full) == {**claim, "spec": {"nodeName": "n"}}
