"""One look at a workload: what its surroundings make of it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drachma.queueing import conditions
from drachma.queueing.configuration import gates
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, workload
from drachma.queueing.lifecycle import workloadreconcile, workloadstep
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.settings import Settings

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_ORCHESTRATED = Settings(gates=gates.DEFAULT.switched({Gate.ORCHESTRATED_PREEMPTION: True}))


def _workload(gate_names: list[str], states: dict[str, str]) -> workload.Workload:
    document: dict[str, Any] = {
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"podSets": [], "preemptionGates": [{"name": name} for name in gate_names]},
        "status": {"preemptionGates": [{"name": name, "position": at} for name, at in states.items()]},
    }
    return decoding.decode(document, workload.Workload)


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        pytest.param(_ORCHESTRATED, [("open", "Open"), ("new", "Closed")], id="gate-on"),
        pytest.param(Settings(), [("open", "Open"), ("gone", "Closed")], id="gate-off"),
    ],
)
def test_states_of_preemption_gates_follow_the_spec(settings: Settings, want: list[tuple[str, str]]) -> None:
    before = _workload(["open", "new"], {"open": "Open", "gone": "Closed"})

    after = workloadreconcile.reconcile(before, workloadstep.Neighbourhood(), _NOW, settings=settings).workload

    assert after is not None
    assert [(each.name, each.position) for each in after.status.preemption_gates] == want


def _admitted(**status: Any) -> workload.Workload:
    """A workload of a minute that was admitted an hour ago, and whose pods are not ready."""
    since = "2025-12-31T23:00:00Z"
    events = [
        {"type": kind, "status": "True", "reason": "r", "message": "", "lastTransitionTime": since}
        for kind in (conditions.QUOTA_RESERVED, conditions.ADMITTED)
    ]
    document: dict[str, Any] = {
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"queueName": "lq", "maximumExecutionTimeSeconds": 60, "podSets": []},
        "status": {"admission": {"clusterQueue": "cq"}, "conditions": events, **status},
    }
    return decoding.decode(document, workload.Workload)


def _queues(**more: Any) -> workloadstep.Neighbourhood:
    local = {"metadata": {"name": "lq", "namespace": "ns"}, "spec": {"clusterQueue": "cq"}}
    return workloadstep.Neighbourhood(
        local_queue=decoding.decode(local, localqueue.LocalQueue),
        cluster_queue=decoding.decode({"metadata": {"name": "cq"}}, clusterqueue.ClusterQueue),
        is_queue_active=True,
        **more,
    )


def test_a_workload_whose_pods_are_late_may_be_overdue_as_well() -> None:
    patience = workloadstep.Patience(workloadstate.ReadyTimeouts(timedelta(seconds=5), None))

    outcome = workloadreconcile.reconcile(_admitted(), _queues(patience=patience), _NOW)

    assert outcome.workload is not None
    told = outcome.workload.status.conditions
    assert conditions.is_true(told, conditions.EVICTED)
    assert conditions.is_true(told, conditions.DEACTIVATION_TARGET)
    assert [each.reason for each in outcome.events] == ["EvictedDueToPodsReadyTimeout", "MaximumExecutionTimeExceeded"]


def test_a_backoff_that_is_over_leaves_no_time_behind() -> None:
    before = _admitted(requeueState={"count": 2, "requeueAt": "2025-12-31T23:59:00Z"})
    waits = decoding.decode(
        {"status": {"conditions": [{"type": "Requeued", "status": "False", "reason": "AdmissionCheck"}]}},
        workload.Workload,
    ).status.conditions
    before = workloadstate.with_status(before, conditions=(*before.status.conditions, *waits))

    after = workloadreconcile.reconcile(before, _queues(), _NOW).workload

    assert after is not None
    assert after.status.requeue_state == workload.RequeueState(count=2)


@pytest.mark.parametrize(
    ("attempt", "want"),
    [
        pytest.param(1, 60, id="the-first-is-the-base-even-above-the-limit"),
        pytest.param(2, 45, id="limited"),
        pytest.param(70, 45, id="still-limited"),
    ],
)
def test_backoffs_are_limited_after_the_first(attempt: int, want: int) -> None:
    timeouts = workloadstate.ReadyTimeouts(timedelta(seconds=5), None)

    backoff = workloadstep.Patience(timeouts, base_seconds=60, max_seconds=45).backoff(attempt)

    assert backoff == timedelta(seconds=want)
