"""Dispatching: copies, the cluster that gets the job, and copies that end, are evicted, lost or out of date."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drachma.queueing.checks import dispatch
from drachma.queueing.checks.dispatch import Act
from drachma.queueing.kinds import decoding, workload

_NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
_TIME = "2026-03-04T05:00:00Z"
_SETTINGS = dispatch.Settings(worker_lost_timeout=timedelta(minutes=15))
_SPEC = {"queueName": "q", "podSets": []}


def _conditions(*kinds: str) -> list[dict[str, str]]:
    return [
        {"type": kind, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": _TIME} for kind in kinds
    ]


def _local(
    *kinds: str, state: str = "Pending", cluster: str = "", other_check: str = "Ready", nominated: tuple[str, ...] = ()
) -> workload.Workload:
    checks = [{"name": "mk", "state": state, "message": ""}, {"name": "other", "state": other_check, "message": ""}]
    status: dict[str, Any] = {"conditions": _conditions("QuotaReserved", *kinds), "admissionChecks": checks}
    status |= {"clusterName": cluster} if cluster else {}
    status |= {"nominatedClusterNames": list(nominated)} if nominated else {}
    return decoding.decode(
        {"metadata": {"name": "wl", "namespace": "default"}, "spec": _SPEC, "status": status}, workload.Workload
    )


def _copy(*kinds: str, reason: str = "R") -> workload.Workload:
    conditions = [{**each, "reason": reason} for each in _conditions(*kinds)]
    return decoding.decode(
        {"metadata": {"name": "wl", "namespace": "default"}, "spec": _SPEC, "status": {"conditions": conditions}},
        workload.Workload,
    )


def _decide(
    local: workload.Workload,
    copies: Mapping[str, workload.Workload | None],
    *,
    specs: Mapping[str, Any] | None = None,
    lost: Mapping[str, datetime] | None = None,
    settings: dispatch.Settings = _SETTINGS,
) -> dispatch.Decision:
    copy_specs = {name: _SPEC for name, copy in copies.items() if copy is not None} | dict(specs or {})
    group = dispatch.Dispatched(local, _SPEC, "mk", copies, copy_specs, lost or {})
    return dispatch.decide(group, _NOW, settings)


def _acts(decision: dispatch.Decision) -> list[tuple[Act, str]]:
    return [(each.act, each.cluster) for each in decision.actions]


def _check(decision: dispatch.Decision) -> tuple[str, str]:
    state = decision.workload.status.admission_checks[0]
    return state.state, state.message


def test_a_workload_is_copied_to_all_clusters() -> None:
    decision = _decide(_local(), {"b": None, "a": None})
    assert decision.workload.status.nominated_cluster_names == ("a", "b")
    assert sorted(_acts(decision), key=str) == [(Act.CREATE, "a"), (Act.CREATE, "b")]


def test_other_checks_come_first() -> None:
    assert not _decide(_local(other_check="Pending"), {"a": None}).actions


def test_another_controller_may_nominate() -> None:
    settings = dispatch.Settings(timedelta(minutes=15), nominates_all=False)
    decision = _decide(_local(nominated=("b",)), {"a": _copy(), "b": None}, settings=settings)
    assert _acts(decision) == [(Act.REMOVE, "a"), (Act.CREATE, "b")]


def test_the_first_cluster_that_admits_gets_the_job() -> None:
    decision = _decide(_local(nominated=("a", "b")), {"a": _copy(), "b": _copy("QuotaReserved", "Admitted")})
    assert _acts(decision) == [(Act.REMOVE, "a"), (Act.SYNC_JOB, "b")]
    assert _check(decision) == ("Ready", 'The workload was admitted on "b"')
    assert decision.workload.status.cluster_name == "b"


@pytest.mark.parametrize(
    ("lost", "want", "message"),
    [
        pytest.param(None, "Retry", 'Admitting remote no longer exists, Previously: "Ready"', id="copy-is-gone"),
        pytest.param(timedelta(minutes=5), "Ready", "", id="cluster-is-away"),
        pytest.param(
            timedelta(minutes=16), "Retry", 'Admitting remote lost, Previously: "Ready"', id="cluster-is-lost"
        ),
    ],
)
def test_a_lost_cluster_is_waited_for(lost: timedelta | None, want: str, message: str) -> None:
    local = _local(state="Ready", cluster="a")
    decision = _decide(local, {"b": None}, lost={} if lost is None else {"a": _NOW - lost})
    assert _check(decision) == (want, message)


def test_a_finished_copy_finishes_the_workload() -> None:
    decision = _decide(_local(state="Ready", cluster="a"), {"a": _copy("Admitted", "Finished")})
    assert _acts(decision) == [(Act.SYNC_JOB, "a")]
    assert any(each.type == "Finished" and each.message == "m" for each in decision.workload.status.conditions)


def test_a_copy_out_of_sync_with_its_job_is_dispatched_again() -> None:
    decision = _decide(_local(state="Ready", cluster="a"), {"a": _copy("Finished", reason="OutOfSync")})
    assert _check(decision)[0] == "Retry"
    assert not any(each.type == "Finished" for each in decision.workload.status.conditions)


def test_an_evicted_copy_is_tried_again() -> None:
    decision = _decide(_local(state="Ready", cluster="a"), {"a": _copy("Evicted")})
    message = 'Workload evicted on worker cluster: "a", resetting for re-admission. Previously: "Ready"'
    assert _check(decision) == ("Retry", message)


def test_an_evicted_workload_stops_its_copy() -> None:
    decision = _decide(_local("Evicted", state="Ready", cluster="a"), {"a": _copy("Admitted")})
    assert _acts(decision) == [(Act.DEACTIVATE, "a")]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({**_SPEC, "priority": 7}, Act.UPDATE_PRIORITY, id="priority"),
        pytest.param({**_SPEC, "queueName": "other"}, Act.REMOVE, id="anything-else"),
    ],
)
def test_copies_follow_the_workload(spec: Mapping[str, Any], want: Act) -> None:
    decision = _decide(_local(nominated=("a",)), {"a": _copy()}, specs={"a": spec})
    assert (want, "a") in _acts(decision)


def test_nothing_is_left_of_a_workload_without_quota() -> None:
    local = decoding.decode(
        {"metadata": {"name": "wl"}, "status": {"admissionChecks": [{"name": "mk", "state": "Pending"}]}},
        workload.Workload,
    )
    assert _acts(_decide(local, {"a": _copy(), "b": None})) == [(Act.REMOVE, "a")]


def test_a_copy_has_no_owner_and_names_its_origin() -> None:
    document = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": "wl",
            "namespace": "default",
            "uid": "u",
            "labels": {"kueue.x-k8s.io/job-uid": "j", "team": "a"},
            "ownerReferences": [{"name": "job"}],
        },
        "spec": {"podSets": [], "preemptionGates": [{"name": "g"}]},
        "status": {"conditions": []},
    }
    assert dispatch.copy_workload(document, "here") == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": "wl",
            "namespace": "default",
            "labels": {"team": "a", "kueue.x-k8s.io/multikueue-origin": "here"},
        },
        "spec": {"podSets": []},
    }
