"""Claims of a pod, and their problems."""

from typing import Any

import pytest
from msgspec import structs

from drachma.api import pod, resourceclaim
from drachma.claims import podclaims
from drachma.testing import claim
from drachma.testing import pod as a_pod


class Claims(dict[tuple[str, str], resourceclaim.ResourceClaim]):
    def get(self, namespace: str, name: str) -> Any:  # type: ignore[override]
        return super().get((namespace, name))


def known(*claims: resourceclaim.ResourceClaim) -> Claims:
    return Claims({(each.metadata.namespace, each.metadata.name): each for each in claims})


def templated(generated: str | None = "", *, has_status: bool = True) -> pod.Pod:
    made = a_pod("p").uid("u").claim("x", template="t").build()
    if not has_status:
        return made
    status = pod.PodResourceClaimStatus(name="x", resource_claim_name=generated)
    return structs.replace(made, status=structs.replace(made.status, resource_claim_statuses=(status,)))


def deleted(name: str) -> resourceclaim.ResourceClaim:
    made = claim(name).build()
    gone = structs.replace(made.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    return structs.replace(made, metadata=gone)


@pytest.mark.parametrize(
    ("waiting", "claims", "want"),
    [
        pytest.param(
            templated(has_status=False), (), 'pod "default/p": ResourceClaim not created yet', id="not-created-yet"
        ),
        pytest.param(
            a_pod("p").claim("x", claim="c").build(),
            (),
            'could not find ResourceClaim "default/c"',
            id="does-not-exist",
        ),
        pytest.param(
            a_pod("p").claim("x", claim="c").build(),
            (deleted("c"),),
            'resourceclaim "c" is being deleted',
            id="being-deleted",
        ),
        pytest.param(
            templated("c"),
            (claim("c").build(),),
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
            id="of-nobody",
        ),
        pytest.param(
            templated("c"),
            (claim("c").owner("Pod", "p", uid="other").build(),),
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
            id="of-an-earlier-pod",
        ),
        pytest.param(
            a_pod("p").claim("x").build(),
            (),
            'pod "default/p", spec.resourceClaim "x": none of the supported fields are set',
            id="neither-claim-nor-template",
        ),
    ],
)
def test_missing(waiting: pod.Pod, claims: Any, want: str) -> None:
    with pytest.raises(podclaims.MissingError) as caught:
        podclaims.resolve(waiting, known(*claims))
    assert str(caught.value) == want


def test_resolved_in_order() -> None:
    waiting = a_pod("p").claim("y", claim="b").claim("x", claim="a").build()
    found = podclaims.resolve(waiting, known(claim("a").build(), claim("b").build()))
    assert [(entry.name, entry.claim.metadata.name) for entry in found] == [("y", "b"), ("x", "a")]


def test_no_claim_was_needed() -> None:
    assert podclaims.resolve(templated(None), known()) == []


@pytest.mark.parametrize(
    ("waiting", "want"),
    [
        pytest.param(a_pod("p").claim("x", claim="c").build(), podclaims.Named("c", is_generated=False), id="by-name"),
        pytest.param(templated("c"), podclaims.Named("c", is_generated=True), id="generated"),
        pytest.param(templated(None), podclaims.NotNeeded(), id="decided-that-none-is-needed"),
        pytest.param(templated(has_status=False), podclaims.Missing(), id="still-to-be-made"),
        pytest.param(
            a_pod("p").claim("x").build(),
            podclaims.Unsupported('pod "default/p", spec.resourceClaim "x": none of the supported fields are set'),
            id="neither-claim-nor-template",
        ),
    ],
)
def test_what_an_entry_means(waiting: pod.Pod, want: podclaims.Reference) -> None:
    assert podclaims.refer(waiting, waiting.spec.resource_claims[0]) == want


def test_names_are_those_that_are_there_by_now() -> None:
    waiting = templated("c")
    entries = (*waiting.spec.resource_claims, pod.PodResourceClaim(name="y", resource_claim_template_name="t"))
    waiting = structs.replace(waiting, spec=structs.replace(waiting.spec, resource_claims=entries))
    assert podclaims.names(waiting) == podclaims.all_names(waiting) == ["c"]
    extended = pod.PodExtendedResourceClaimStatus(resource_claim_name="e")
    status = structs.replace(waiting.status, extended_resource_claim_status=extended)
    assert podclaims.all_names(structs.replace(waiting, status=status)) == ["c", "e"]


def test_a_pod_without_claims_uses_none() -> None:
    assert podclaims.names(a_pod("p").build()) == []
    assert not podclaims.uses_claims(a_pod("p").build())
    assert podclaims.uses_claims(templated(has_status=False))
