"""Consumers of claims."""

import pytest
from msgspec import structs

from drachma.api import resourceclaim
from drachma.claims import reservation
from drachma.testing import claim
from drachma.testing import pod as a_pod

_POD = a_pod("p").uid("u").build()


@pytest.mark.parametrize(
    ("reserved", "want"),
    [
        pytest.param(claim("c").build(), False, id="for-nobody"),
        pytest.param(claim("c").reserved_for("p", uid="u").build(), True, id="for-this-pod"),
        pytest.param(claim("c").reserved_for("p", uid="earlier").build(), False, id="for-an-earlier-pod"),
        pytest.param(claim("c").reserved_for("q", uid="v").reserved_for("p", uid="u").build(), True, id="among-others"),
    ],
)
def test_reserved_for(reserved: resourceclaim.ResourceClaim, want: bool) -> None:
    assert reservation.is_reserved_for(reserved, _POD) is want


def test_a_pod_that_is_entered_is_among_the_consumers() -> None:
    made = claim("c").build()
    status = structs.replace(made.status, reserved_for=(reservation.consumer(_POD),))
    assert reservation.is_reserved_for(structs.replace(made, status=status), _POD)


@pytest.mark.parametrize(
    ("group", "resource", "want"),
    [
        pytest.param("", "pods", True, id="pod"),
        pytest.param("example.com", "pods", False, id="another-group"),
        pytest.param("", "nodes", False, id="another-resource"),
    ],
)
def test_consumers_need_not_be_pods(group: str, resource: str, want: bool) -> None:
    reference = resourceclaim.ResourceClaimConsumerReference(api_group=group, resource=resource, name="x", uid="u")
    assert reservation.is_pod(reference) is want
