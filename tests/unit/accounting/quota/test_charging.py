"""Charges to quotas, and refusals."""

from typing import Any

import pytest

from drachma.accounting.quota import charging, evaluator, pods, recount, volumeclaims
from drachma.api import pod, resourcequota
from drachma.api.persistentvolumeclaim import PersistentVolumeClaim
from tests.unit.accounting.quota import worlds
from tests.unit.accounting.quota.test_pods import a_pod, asks

PODS = pods.Pods()


def charge(
    *quotas: resourcequota.ResourceQuota, new: pod.Pod, old: pod.Pod | None = None, subresource: str = ""
) -> dict[str, dict[str, str]] | str:
    outcome = charging.charges(PODS, evaluator.Change(new, old, subresource), quotas, facts=worlds.NOTHING)
    if isinstance(outcome, charging.Refusal):
        return outcome.message
    return {name: {each: str(amount) for each, amount in charged.items()} for name, charged in outcome.items()}


CPU = worlds.quota({"requests.cpu": "1", "pods": "3"}, {"requests.cpu": "500m", "pods": "1"})


@pytest.mark.parametrize(
    ("quotas", "new", "want"),
    [
        pytest.param([CPU], a_pod(asks(cpu="500m")), {"q": {"requests.cpu": "500m", "pods": "1"}}, id="room"),
        pytest.param([CPU], a_pod(asks(cpu="0")), {"q": {"pods": "1"}}, id="nothing-of-it"),
        pytest.param(
            [CPU],
            a_pod(asks(cpu="501m")),
            "exceeded quota: q, requested: requests.cpu=501m, used: requests.cpu=500m, limited: requests.cpu=1",
            id="no-room",
        ),
        pytest.param([CPU], a_pod({}), "failed quota: q: must specify requests.cpu for: c0", id="not-stated"),
        pytest.param(
            [worlds.quota({"pods": "1", "limits.cpu": "1"}, {"pods": "0"})],
            a_pod(asks({"cpu": "1"})),
            "status unknown for quota: q, resources: limits.cpu,pods",
            id="not-counted-yet",
        ),
        pytest.param([worlds.quota({"services": "0"})], a_pod({}), {}, id="of-other-kinds"),
        pytest.param([worlds.quota({"pods": "0"}, scopes=["NotBestEffort"])], a_pod({}), {}, id="out-of-scope"),
        pytest.param(
            [worlds.quota({"pods": "2"}, name="a"), worlds.quota({"pods": "0"}, name="b")],
            a_pod({}),
            "exceeded quota: b, requested: pods=1, used: pods=0, limited: pods=0",
            id="one-of-two",
        ),
        pytest.param(
            [worlds.quota({"pods": "2"}, name="a"), worlds.quota({"count/pods": "1"}, name="b")],
            a_pod({}),
            {"a": {"pods": "1"}, "b": {"count/pods": "1"}},
            id="two",
        ),
    ],
)
def test_a_new_pod(quotas: list[resourcequota.ResourceQuota], new: pod.Pod, want: Any) -> None:
    assert charge(*quotas, new=new) == want


def test_an_update_is_charged_for_what_it_adds() -> None:
    old = a_pod(asks(cpu="300m"))
    assert charge(CPU, new=a_pod(asks(cpu="800m")), old=old, subresource="resize") == {"q": {"requests.cpu": "500m"}}
    assert charge(CPU, new=a_pod(asks(cpu="100m")), old=old, subresource="resize") == {}
    assert "requested: requests.cpu=501m," in charge(CPU, new=a_pod(asks(cpu="801m")), old=old, subresource="resize")


def test_a_status_of_a_pod_is_not_charged() -> None:
    assert charge(CPU, new=a_pod(asks(cpu="9")), old=a_pod({}), subresource="status") == {}


def test_a_pod_that_comes_into_scope_is_charged_in_full() -> None:
    quota = worlds.quota({"pods": "1"}, scopes=["Terminating"])
    assert charge(quota, new=a_pod({}, activeDeadlineSeconds=9), old=a_pod({})) == {"q": {"pods": "1"}}


def test_negative_use_is_refused() -> None:
    assert charge(CPU, new=a_pod(asks(cpu="-1"))) == ("quota usage is negative for resource(s): cpu,requests.cpu")


def test_a_status_is_charged_even_without_room() -> None:
    quota = worlds.quota({"requests.storage": "1Gi"}, {"requests.storage": "1Gi"})
    old, new = (
        worlds.read(
            {"spec": {"resources": {"requests": {"storage": "1Gi"}}}, "status": {"allocatedResources": allocated}},
            PersistentVolumeClaim,
        )
        for allocated in ({}, {"storage": "3Gi"})
    )
    change = evaluator.Change(new, old, "status")
    outcome = charging.charges(volumeclaims.VolumeClaims(), change, [quota], facts=worlds.NOTHING)
    assert not isinstance(outcome, charging.Refusal)
    assert {name: str(amount) for name, amount in outcome["q"].items()} == {"requests.storage": "2Gi"}


def test_a_recount_counts_what_is_in_scope() -> None:
    subjects = [a_pod(asks(cpu="1")), a_pod({}), a_pod(asks(cpu="250m"), status={"phase": "Failed"})]
    spec = worlds.quota({"requests.cpu": "9", "count/pods": "9", "services": "9"}, scopes=["NotBestEffort"]).spec
    counted = recount.used(spec, [(PODS, subjects)], facts=worlds.NOTHING)
    assert {name: str(amount) for name, amount in counted.items()} == {"requests.cpu": "1", "count/pods": "2"}
    nothing = recount.used(spec, [(PODS, [])], facts=worlds.NOTHING)
    assert {name: str(amount) for name, amount in nothing.items()} == {"requests.cpu": "0", "count/pods": "0"}
