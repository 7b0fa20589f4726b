"""Charges of claims: the largest number of devices of each class."""

from typing import Any

import pytest

from drachma.accounting.quota import resourceclaims
from drachma.api import pod
from drachma.api.resourceclaim import ResourceClaim
from tests.unit.accounting.quota import worlds

CLAIMS = resourceclaims.ResourceClaims()
GPU = "gpu.deviceclass.resource.k8s.io/devices"
TPU = "tpu.deviceclass.resource.k8s.io/devices"
IMPLICIT = "requests.deviceclass.resource.kubernetes.io/gpu"
EXPLICIT = "requests.example.com/gpu"


def exactly(of: str = "gpu", count: int = 1, **fields: Any) -> dict[str, Any]:
    return {"name": "r", "exactly": way(of, count, **fields)}


def way(of: str = "gpu", count: int = 1, **fields: Any) -> dict[str, Any]:
    return {"deviceClassName": of, "allocationMode": "ExactCount", "count": count, **fields}


def first(*ways: dict[str, Any]) -> dict[str, Any]:
    return {"name": "r", "firstAvailable": [{"name": "s", **each} for each in ways]}


def claim(*requests: dict[str, Any], name: str = "c", **metadata: Any) -> ResourceClaim:
    document = {"metadata": {"name": name, "namespace": "n", **metadata}, "spec": {"devices": {"requests": requests}}}
    made: ResourceClaim = worlds.read(document, ResourceClaim)
    return made


@pytest.mark.parametrize(
    ("subject", "want"),
    [
        pytest.param(claim(exactly(), exactly(count=2)), {GPU: "3"}, id="requests-add-up"),
        pytest.param(claim(exactly(), exactly("tpu", 2)), {GPU: "1", TPU: "2"}, id="class-by-class"),
        pytest.param(claim(exactly(allocationMode="All", count=0)), {GPU: "32"}, id="all"),
        pytest.param(claim(exactly(adminAccess=True)), {GPU: "1"}, id="admin-access-is-charged"),
        pytest.param(claim(exactly(allocationMode="FromTheFuture")), {}, id="unknown-mode"),
        pytest.param(
            claim(first(way(count=1), way("tpu", 3), way("tpu", 2))), {GPU: "1", TPU: "3"}, id="most-of-alternatives"
        ),
        pytest.param(claim(first(way(count=2)), exactly(count=3)), {GPU: "5"}, id="alternatives-and-exact-ones"),
        pytest.param(claim(first(way(allocationMode="All"), way(count=40))), {GPU: "40"}, id="more-than-all"),
        pytest.param(claim({"name": "r"}), {}, id="a-request-of-another-sort"),
    ],
)
def test_devices(subject: ResourceClaim, want: dict[str, str]) -> None:
    usage = {name: amount for name, amount in worlds.used(CLAIMS, subject).items() if name.endswith("/devices")}
    assert usage == want


def test_a_class_may_have_an_extended_resource() -> None:
    subject = claim(exactly(count=2))
    without = worlds.used(CLAIMS, subject, worlds.Facts(classes={"gpu": None}))
    assert without == {"count/resourceclaims.resource.k8s.io": "1", GPU: "2", IMPLICIT: "2"}
    named = worlds.Facts(classes={"gpu": "example.com/gpu"})
    assert worlds.used(CLAIMS, subject, named) == {**without, EXPLICIT: "2"}
    assert CLAIMS.counted([GPU, IMPLICIT, EXPLICIT, "requests.example.com/other"], named) == {GPU, IMPLICIT, EXPLICIT}
    assert CLAIMS.counted([GPU, IMPLICIT, EXPLICIT], worlds.Facts(classes={"gpu": None})) == {GPU}


def owned(name: str = "c", uid: str = "u", created: str = "2026-01-01T00:00:02Z", count: int = 3) -> ResourceClaim:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    return claim(
        exactly(count=count), name=name, annotations=annotations, ownerReferences=[owner], creationTimestamp=created
    )


def payer(status: dict[str, Any] | None = None) -> pod.Pod:
    container = {"name": "c", "resources": {"requests": {"example.com/gpu": "2"}}}
    document = {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [container]}, "status": status or {}}
    made: pod.Pod = worlds.read(document, pod.Pod)
    return made


NAMED = {"extendedResourceClaimStatus": {"resourceClaimName": "c"}}


@pytest.mark.parametrize(
    ("subject", "pods", "others", "want"),
    [
        pytest.param(owned(), [payer()], [], "1", id="less-what-the-pod-pays"),
        pytest.param(owned(count=2), [payer()], [], None, id="all-of-it-is-paid"),
        pytest.param(owned(), [], [], "3", id="the-pod-is-gone"),
        pytest.param(owned(uid="other"), [payer()], [], "3", id="another-pod-of-that-name"),
        pytest.param(owned(), [payer({"phase": "Failed"})], [], "3", id="the-pod-has-ended"),
        pytest.param(owned(), [payer(NAMED)], [owned("b", created="2026-01-01T00:00:01Z")], "1", id="named-by-its-pod"),
        pytest.param(owned("d"), [payer(NAMED)], [], "3", id="another-is-named-by-its-pod"),
        pytest.param(owned(), [payer()], [owned("z", created="2026-01-01T00:00:01Z")], "3", id="an-older-one"),
        pytest.param(owned(), [payer()], [owned("b")], "3", id="as-old-and-first-by-name"),
        pytest.param(owned(), [payer()], [owned("d"), owned("a", uid="x")], "1", id="the-first-of-its-pod"),
    ],
)
def test_what_a_pod_pays_is_not_charged_again(
    subject: ResourceClaim, pods: list[pod.Pod], others: list[ResourceClaim], want: str | None
) -> None:
    facts = worlds.Facts(classes={"gpu": "example.com/gpu"}, pods=pods, claims=[subject, *others])
    usage = worlds.used(CLAIMS, subject, facts)
    assert usage.get(EXPLICIT) == want
    assert usage[IMPLICIT] == usage[GPU]
