"""The corners of conversion that recorded objects do not reach: what counts as set in a v1beta1 request."""

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


def test_v1beta1_slice_without_basic_part() -> None:
    given = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceSlice",
        "spec": {"driver": "d", "nodeName": "", "allNodes": False, "devices": [{"name": "a"}]},
    }
    stored = codec.decode(given)
    assert codec.encode(stored)["spec"] == {"driver": "d", "devices": [{"name": "a"}]}
    assert codec.encode(stored, api_version="resource.k8s.io/v1beta1")["spec"] == {
        "driver": "d",
        "devices": [{"name": "a", "basic": {}}],
    }
