"""The merge patch of a workload's status."""

from datetime import UTC, datetime
from typing import Any

import pytest

from drachma.api import meta
from drachma.queueing.component import workloadwrites
from drachma.queueing.kinds import decoding, workload
from drachma.server.patch import mergepatch
from drachma.values.quantity import Quantity

_TIME = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
_WAITING = meta.Condition(type="QuotaReserved", status="False", reason="Pending", last_transition_time=_TIME)
_RESERVED = meta.Condition(type="QuotaReserved", status="True", reason="QuotaReserved", last_transition_time=_TIME)


def _admission(*flavors: tuple[str, str]) -> workload.Admission:
    assigned = workload.PodSetAssignment(
        name="main",
        flavors=dict(flavors),
        resource_usage={resource: Quantity.parse("1") for resource, _ in flavors},
    )
    return workload.Admission(cluster_queue="team", pod_set_assignments=(assigned,))


_REQUESTS = (workload.PodSetRequest(name="main", resources={"cpu": Quantity.parse("500m")}),)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            workload.WorkloadStatus(),
            workload.WorkloadStatus(conditions=(_RESERVED,), admission=_admission(("cpu", "spot"))),
            id="admitted",
        ),
        pytest.param(
            workload.WorkloadStatus(conditions=(_WAITING,), resource_requests=_REQUESTS),
            workload.WorkloadStatus(conditions=(_RESERVED,), admission=_admission(("cpu", "spot"))),
            id="admitted-after-waiting",
        ),
        pytest.param(
            workload.WorkloadStatus(conditions=(_RESERVED,), admission=_admission(("cpu", "spot"), ("memory", "spot"))),
            workload.WorkloadStatus(conditions=(_RESERVED,), admission=_admission(("cpu", "on-demand"))),
            id="admitted-otherwise",
        ),
        pytest.param(
            workload.WorkloadStatus(conditions=(_RESERVED,), admission=_admission(("cpu", "spot"))),
            workload.WorkloadStatus(
                conditions=(_WAITING,), requeue_state=workload.RequeueState(count=1, requeue_at=_TIME)
            ),
            id="evicted",
        ),
        pytest.param(
            workload.WorkloadStatus(requeue_state=workload.RequeueState(count=2, requeue_at=_TIME)),
            workload.WorkloadStatus(requeue_state=workload.RequeueState(count=2)),
            id="backoff-over",
        ),
    ],
)
def test_the_change_makes_one_status_of_the_other(
    before: workload.WorkloadStatus, after: workload.WorkloadStatus
) -> None:
    change = workloadwrites.status_change(workload.Workload(status=before), workload.Workload(status=after))

    assert change
    assert mergepatch.apply(decoding.document(before), change) == decoding.document(after)


def test_only_what_is_different_is_written() -> None:
    before = workload.WorkloadStatus(conditions=(_RESERVED,), admission=_admission(("cpu", "spot")))
    after = workload.WorkloadStatus(conditions=(_WAITING,), admission=_admission(("cpu", "spot")))

    change: dict[str, Any] = workloadwrites.status_change(
        workload.Workload(status=before), workload.Workload(status=after)
    )

    assert change.keys() == {"conditions"}


def test_nothing_is_written_of_an_equal_status() -> None:
    one, other = (workload.Workload(status=workload.WorkloadStatus(conditions=(_WAITING,))) for _ in range(2))

    assert workloadwrites.status_change(one, other) == {}


_READY = meta.Condition(type="PodsReady", status="True", reason="Ready", last_transition_time=_TIME)


def test_a_decision_is_written_to_a_version_in_which_only_unrelated_conditions_changed() -> None:
    before = workload.Workload(status=workload.WorkloadStatus(conditions=(_WAITING,)))
    decided = workload.Workload(
        status=workload.WorkloadStatus(conditions=(_RESERVED,), admission=_admission(("cpu", "spot")))
    )
    newer = workload.Workload(status=workload.WorkloadStatus(conditions=(_WAITING, _READY)))
    rebased = workloadwrites.rebase(before, decided, onto=newer)
    assert rebased is not None
    assert rebased.status.admission == decided.status.admission
    assert {(each.type, each.status) for each in rebased.status.conditions} == {
        ("QuotaReserved", "True"),
        ("PodsReady", "True"),
    }


@pytest.mark.parametrize(
    "newer",
    [
        pytest.param(workload.WorkloadStatus(conditions=(_RESERVED,), admission=_admission()), id="admitted"),
        pytest.param(
            workload.WorkloadStatus(conditions=(_WAITING, meta.Condition(type="Finished", status="True"))), id="ended"
        ),
        pytest.param(
            workload.WorkloadStatus(conditions=(_WAITING,), reclaimable_pods=(workload.ReclaimablePod(name="main"),)),
            id="pods-that-ended",
        ),
    ],
)
def test_a_decision_is_withdrawn_if_its_basis_changed(newer: workload.WorkloadStatus) -> None:
    before = workload.Workload(status=workload.WorkloadStatus(conditions=(_WAITING,)))
    decided = workload.Workload(
        status=workload.WorkloadStatus(conditions=(_RESERVED,), admission=_admission(("cpu", "spot")))
    )
    assert workloadwrites.rebase(before, decided, onto=workload.Workload(status=newer)) is None
