"""The corners of conversion that recorded objects do not reach: what counts as set in a v1beta1 request; v1alpha3."""

from typing import Any

import pytest

from drachma.api import codec


def claim_with(request: dict[str, Any], *, version: str) -> dict[str, Any]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [request]}},
    }


@pytest.mark.parametrize(
    ("beta", "want"),
    [
        pytest.param({"name": "r"}, {"name": "r"}, id="nothing-set"),
        pytest.param({"name": "r", "deviceClassName": ""}, {"name": "r"}, id="empty-class-name-is-unset"),
        pytest.param({"name": "r", "count": 0}, {"name": "r"}, id="zero-count-is-unset"),
        pytest.param(
            {"name": "r", "selectors": []}, {"name": "r", "exactly": {"selectors": []}}, id="empty-list-is-set"
        ),
        pytest.param(
            {"name": "r", "adminAccess": False}, {"name": "r", "exactly": {"adminAccess": False}}, id="false-is-set"
        ),
        pytest.param(
            {"name": "r", "capacity": {}}, {"name": "r", "exactly": {"capacity": {}}}, id="empty-capacity-is-set"
        ),
        pytest.param(
            {"name": "r", "count": 2, "firstAvailable": [{"name": "s"}]},
            {"name": "r", "exactly": {"count": 2}, "firstAvailable": [{"name": "s"}]},
            id="both-forms-are-kept-for-validation",
        ),
    ],
)
def test_v1beta1_requests(beta: dict[str, Any], want: dict[str, Any]) -> None:
    assert codec.encode(codec.decode(claim_with(beta, version="v1beta1"))) == claim_with(want, version="v1")


@pytest.mark.parametrize("exactly", [None, {}], ids=["no-exact-form", "an-empty-one"])
def test_v1beta1_requests_always_have_a_class_name(exactly: dict[str, Any] | None) -> None:
    request = {"name": "r"} if exactly is None else {"name": "r", "exactly": exactly}
    written = codec.encode(codec.decode(claim_with(request, version="v1")), api_version="resource.k8s.io/v1beta1")
    assert written["spec"]["devices"]["requests"] == [{"name": "r", "deviceClassName": ""}]


def test_v1beta1_slice_without_basic_part() -> None:
    given = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceSlice",
        "spec": {"driver": "d", "nodeName": "", "allNodes": False, "devices": [{"name": "a"}]},
    }
    stored_object = codec.decode(given)
    assert codec.encode(stored_object)["spec"] == {"driver": "d", "devices": [{"name": "a"}]}
    assert codec.encode(stored_object, api_version="resource.k8s.io/v1beta1")["spec"] == {
        "driver": "d",
        "devices": [{"name": "a", "basic": {}}],
    }


def alpha_slice(device: dict[str, Any], *, version: str) -> dict[str, Any]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {"driver": "d", "pool": pool, "nodeName": "n", "devices": [device]},
    }


@pytest.mark.parametrize(
    ("alpha", "want"),
    [
        pytest.param({"name": "a", "basic": {}}, {"name": "a"}, id="nothing-but-a-name"),
        pytest.param(
            {"name": "a", "basic": {"capacity": {"memory": "16Gi", "slots": 4}}},
            {"name": "a", "capacity": {"memory": {"value": "16Gi"}, "slots": {"value": "4"}}},
            id="capacities-are-plain-quantities",
        ),
        pytest.param(
            {"name": "a", "basic": {"attributes": {"model": {"string": "x"}}, "capacity": {}}},
            {"name": "a", "attributes": {"model": {"string": "x"}}, "capacity": {}},
            id="attributes",
        ),
    ],
)
def test_v1alpha3_devices(alpha: dict[str, Any], want: dict[str, Any]) -> None:
    stored_object = codec.decode(alpha_slice(alpha, version="v1alpha3"))
    assert codec.encode(stored_object) == alpha_slice(want, version="v1")
    again = codec.encode(stored_object, api_version="resource.k8s.io/v1alpha3")
    assert codec.encode(codec.decode(again)) == codec.encode(stored_object)


def test_v1alpha3_has_no_room_for_policies_of_shared_capacity() -> None:
    policy = {"default": "1Gi"}
    shared = {"name": "a", "capacity": {"memory": {"value": "16Gi", "requestPolicy": policy}, "none": {}}}
    stored_object = codec.decode(alpha_slice(shared, version="v1"))
    assert codec.encode(stored_object, api_version="resource.k8s.io/v1alpha3") == alpha_slice(
        {"name": "a", "basic": {"capacity": {"memory": "16Gi", "none": "0"}}}, version="v1alpha3"
    )


def test_v1alpha3_claims_are_flat() -> None:
    flat = {"name": "r", "deviceClassName": "gpu", "count": 2}
    stored_object = codec.decode(claim_with(flat, version="v1alpha3"))
    want = claim_with({"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}, version="v1")
    assert codec.encode(stored_object) == want
    assert codec.encode(stored_object, api_version="resource.k8s.io/v1alpha3") == claim_with(flat, version="v1alpha3")
