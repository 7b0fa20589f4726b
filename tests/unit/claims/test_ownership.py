"""Owners of claims."""

import pytest

from drachma.api import meta, resourceclaim
from drachma.claims import ownership
from drachma.testing import claim
from drachma.testing import pod as a_pod

_POD = a_pod("p").uid("u").build()


def test_owner_must_be_the_controller() -> None:
    metadata = meta.ObjectMeta(owner_references=(meta.OwnerReference(uid="u", kind="Pod", name="p"),))
    assert not ownership.is_controlled_by(metadata, "u")
    assert ownership.controller_of(resourceclaim.ResourceClaim(metadata=metadata)) is None


@pytest.mark.parametrize(
    ("made", "want"),
    [
        pytest.param(claim("c").owner("Pod", "p", uid="u").build(), "u", id="pod"),
        pytest.param(claim("c").owner("Job", "p", uid="u", api_version="batch/v1").build(), None, id="another-kind"),
        pytest.param(claim("c").build(), None, id="nobody"),
    ],
)
def test_the_pod_that_a_claim_was_generated_for(made: resourceclaim.ResourceClaim, want: str | None) -> None:
    owner = ownership.owning_pod(made)
    assert (None if owner is None else owner.uid) == want


def test_a_claim_that_is_made_for_a_pod_is_its_own() -> None:
    metadata = meta.ObjectMeta(namespace="default", name="c", owner_references=(ownership.consumer_reference(_POD),))
    assert ownership.problem(resourceclaim.ResourceClaim(metadata=metadata), _POD) == ""


def test_a_claim_of_an_earlier_pod_is_not() -> None:
    other = claim("c").owner("Pod", "p", uid="earlier").build()
    want = "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)"
    assert ownership.problem(other, _POD) == want
