"""Requests for nodes: those that are made, merged, repeated and deleted, and the states that follow from them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from drachma.queueing.checks import provisioning
from drachma.queueing.configuration.gates import DEFAULT, Gates
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.kinds.provisioning import ProvisioningRequestConfigSpec, RetryStrategy
from drachma.queueing.kinds.resourceflavor import ResourceFlavor

_NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
_TIME = "2026-03-04T05:00:00Z"
_CONFIG = ProvisioningRequestConfigSpec(
    provisioning_class_name="check-capacity.autoscaling.x-k8s.io",
    retry_strategy=RetryStrategy(backoff_limit_count=2, backoff_base_seconds=60, backoff_max_seconds=100),
)


def _pod_set(name: str, *, count: int = 2, resource: str = "cpu", image: str = "i") -> dict[str, Any]:
    container = {"name": "c", "image": image, "resources": {"limits": {resource: "1"}}}
    return {"name": name, "count": count, "template": {"spec": {"containers": [container]}}}


def _workload(
    *pod_sets: dict[str, Any], state: Mapping[str, Any] | None = None, conditions: tuple[str, ...] = ("QuotaReserved",)
) -> workload.Workload:
    assignments = [{"name": each["name"], "flavors": {"cpu": "f"}, "count": each["count"]} for each in pod_sets]
    met = [
        {"type": kind, "status": "True", "reason": "r", "message": "", "lastTransitionTime": _TIME}
        for kind in conditions
    ]
    status = {
        "admission": {"clusterQueue": "q", "podSetAssignments": assignments},
        "conditions": met,
        "admissionChecks": [{"name": "check", "state": "Pending", "message": "", **(state or {})}],
    }
    metadata = {"name": "wl", "namespace": "default", "uid": "u"}
    return decoding.decode(
        {"metadata": metadata, "spec": {"podSets": list(pod_sets)}, "status": status}, workload.Workload
    )


def _request(
    attempt: int = 1, *conditions: tuple[str, str], details: Mapping[str, str] | None = None
) -> dict[str, Any]:
    name = f"wl-check-{attempt}"
    met = [{"type": kind, "status": "True", "message": message} for kind, message in conditions]
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "provisioningClassName": _CONFIG.provisioning_class_name,
            "podSets": [{"podTemplateRef": {"name": f"ppt-{name}-main"}, "count": 2}],
        },
        "status": {"conditions": met, "provisioningClassDetails": details or {}},
    }


def _step(
    wl: workload.Workload,
    *requests: Mapping[str, Any],
    config: ProvisioningRequestConfigSpec | None = _CONFIG,
    gates: Gates = DEFAULT,
) -> provisioning.CheckOutcome:
    document: dict[str, Any] = decoding.document(wl)
    around = provisioning.Around(
        configs={"check": config},
        requests=requests,
        pod_sets=document["spec"]["podSets"],
        flavors={"f": ResourceFlavor()},
        gates=gates,
    )
    return provisioning.take_step(wl, around, _NOW)


def _state(outcome: provisioning.CheckOutcome) -> tuple[str, str]:
    (state,) = outcome.workload.status.admission_checks
    return state.state, state.message


def test_limits_are_requested() -> None:
    (new,) = _step(_workload(_pod_set("main"))).new
    assert new.request["metadata"]["name"] == "wl-check-1"
    (container,) = new.templates[0]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "1"}


def test_equal_pod_sets_are_merged_if_the_parameters_say_so() -> None:
    config = ProvisioningRequestConfigSpec(
        provisioning_class_name="c", pod_set_merge_policy="IdenticalWorkloadSchedulingRequirements"
    )
    wl = _workload(_pod_set("one"), _pod_set("two", image="other"))
    (merged,) = _step(wl, config=config).new
    assert [each["count"] for each in merged.request["spec"]["podSets"]] == [4]
    (separate,) = _step(wl).new
    assert [each["count"] for each in separate.request["spec"]["podSets"]] == [2, 2]


def test_pods_without_managed_resources_need_no_nodes() -> None:
    config = ProvisioningRequestConfigSpec(provisioning_class_name="c", managed_resources=("gpu",))
    outcome = _step(_workload(_pod_set("main")), config=config)
    assert not outcome.new
    assert _state(outcome) == ("Ready", "the provisioning request is not needed")


def test_a_check_that_is_not_active_waits() -> None:
    outcome = _step(_workload(_pod_set("main")), config=None)
    assert (_state(outcome), list(outcome.new)) == (("Pending", "the check is not active"), [])


@pytest.mark.parametrize(
    ("request_document", "state", "want"),
    [
        pytest.param(_request(1, ("Provisioned", "here")), {}, ("Ready", "here"), id="provisioned"),
        pytest.param(_request(1, ("Failed", "gone")), {}, ("Retry", "Retrying after failure: gone"), id="failed-once"),
        pytest.param(_request(3, ("Failed", "gone")), {"retryCount": 2}, ("Rejected", "gone"), id="failed-too-often"),
        pytest.param(
            _request(1, ("Provisioned", "x"), ("BookingExpired", "late")),
            {},
            ("Retry", "Retrying after booking expired: late"),
            id="booking-expired",
        ),
        pytest.param(
            _request(1, ("Provisioned", "x"), ("CapacityRevoked", "taken")), {}, ("Rejected", "taken"), id="revoked"
        ),
        pytest.param(_request(1), {"message": "old"}, ("Pending", ""), id="no-condition-yet"),
    ],
)
def test_conditions_decide(
    request_document: Mapping[str, Any], state: Mapping[str, Any], want: tuple[str, str]
) -> None:
    assert _state(_step(_workload(_pod_set("main"), state=state), request_document)) == want


@pytest.mark.parametrize(("retries", "want"), [pytest.param(0, 60, id="first"), pytest.param(1, 100, id="capped")])
def test_waits_double_up_to_the_maximum(retries: int, want: int) -> None:
    wl = _workload(_pod_set("main"), state={"retryCount": retries})
    outcome = _step(wl, _request(retries + 1, ("Failed", "gone")))
    assert outcome.workload.status.admission_checks[0].requeue_after_seconds == want


def test_an_old_failure_is_followed_by_the_next_attempt() -> None:
    wl = _workload(_pod_set("main"), state={"retryCount": 1})
    (new,) = _step(wl, _request(1, ("Failed", "gone"))).new
    assert new.request["metadata"]["name"] == "wl-check-2"


def test_an_expired_booking_does_not_matter_to_an_admitted_workload() -> None:
    wl = _workload(_pod_set("main"), state={"state": "Ready"}, conditions=("QuotaReserved", "Admitted"))
    outcome = _step(wl, _request(1, ("Provisioned", "x"), ("BookingExpired", "late")))
    assert (outcome.workload, list(outcome.new), list(outcome.obsolete)) == (wl, [], [])


def test_pods_are_led_to_their_nodes() -> None:
    config = decoding.decode(
        {
            "provisioningClassName": _CONFIG.provisioning_class_name,
            "podSetUpdates": {"nodeSelector": [{"key": "pool", "valueFromProvisioningClassDetail": "p"}]},
        },
        ProvisioningRequestConfigSpec,
    )
    outcome = _step(_workload(_pod_set("main")), _request(1, ("Provisioned", "x"), details={"p": "new"}), config=config)
    (update,) = outcome.workload.status.admission_checks[0].pod_set_updates
    assert (update.name, update.node_selector) == ("main", {"pool": "new"})
    assert update.annotations["autoscaling.x-k8s.io/provisioning-request"] == "wl-check-1"


@pytest.mark.parametrize("condition", ["Finished", "Evicted"])
def test_requests_end_with_the_need_for_them(condition: str) -> None:
    wl = _workload(_pod_set("main"), conditions=("QuotaReserved", condition))
    assert _step(wl, _request(1)).obsolete == ["wl-check-1"]


def test_requests_of_evicted_workloads_stay_without_the_gate() -> None:
    wl = _workload(_pod_set("main"), conditions=("QuotaReserved", "Evicted"))
    gates = DEFAULT.switched({"CleanupProvisioningRequestsOnEviction": False})
    assert not _step(wl, _request(1), gates=gates).obsolete


def test_a_request_with_other_parameters_is_replaced() -> None:
    config = ProvisioningRequestConfigSpec(
        provisioning_class_name=_CONFIG.provisioning_class_name, parameters={"zone": "b"}
    )
    outcome = _step(_workload(_pod_set("main")), _request(1), config=config)
    assert outcome.obsolete == ["wl-check-1"]
    assert len(outcome.new) == 1
