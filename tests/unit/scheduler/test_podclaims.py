"""Which claims a pod uses, what is wrong with them, and what can help."""

from typing import Any

import pytest
from msgspec import structs

from drachma.api import gates, meta, pod, resourceclaim
from drachma.scheduler import cluster
from drachma.scheduler.dynamicresources import inventory, podclaims, wakeups
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


ALLOCATED = claim("c").uid("c").allocated(("r", "d", "p", "x")).build()
FREE = claim("c").uid("c").build()
RESERVED = claim("c").uid("c").allocated(("r", "d", "p", "x")).reserved_for("q", uid="q").build()
OTHER = claim("other").uid("other").build()


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, FREE, True, id="own-claim-created"),
        pytest.param(FREE, ALLOCATED, True, id="own-claim-allocated"),
        pytest.param(ALLOCATED, RESERVED, True, id="own-claim-reserved"),
        pytest.param(FREE, FREE, False, id="nothing-in-the-status"),
        pytest.param(None, OTHER, False, id="claim-of-another-pod"),
        pytest.param(
            claim("other").uid("other").allocated(("r", "d", "p", "x")).build(), OTHER, True, id="devices-given-back"
        ),
        pytest.param(ALLOCATED, None, True, id="deleted-with-its-devices"),
        pytest.param(FREE, None, False, id="deleted-without-devices"),
    ],
)
def test_what_changes_of_claims_help(old: Any, new: Any, want: bool) -> None:
    devices = inventory.Inventory(cluster.Cluster(), gates.ALL)
    devices.claims.observe(FREE)
    waiting = a_pod("p").claim("x", claim="c").build()
    hint = next(each for each in wakeups.Wakeups(devices).hints() if each.resource == "ResourceClaim")
    assert hint.helps(waiting, old, new) is want


def test_owner_must_be_the_controller() -> None:
    metadata = meta.ObjectMeta(owner_references=(meta.OwnerReference(uid="u", kind="Pod", name="p"),))
    assert not podclaims.is_controlled_by(metadata, "u")
