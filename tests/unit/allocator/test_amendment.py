"""Amendments: a proposed change carried out on claims."""

import pytest

from drachma.allocator.explanation import amendment
from drachma.allocator.explanation.report import Change, ChangeKind
from drachma.api import codec, resourceclaim
from drachma.values import quantity


def claim() -> resourceclaim.ResourceClaim:
    exactly = {"deviceClassName": "gpu.example.com", "count": 4}
    made = codec.decode(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "want", "namespace": "default"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        }
    )
    assert isinstance(made, resourceclaim.ResourceClaim)
    return made


def change(kind: ChangeKind, *, request: str = "gpu", number: int | None = None, after: str = "") -> Change:
    return Change(kind=kind, size=1, subject="default/want", request=request, number=number, after=after)


def amended(proposal: Change, *claims: resourceclaim.ResourceClaim) -> resourceclaim.ResourceClaim:
    result = amendment.apply(proposal, claims or (claim(),))
    assert result is not None
    return result[0]


def test_a_lower_count() -> None:
    exactly = amended(change(ChangeKind.LOWER_COUNT, after="2")).spec.devices.requests[0].exactly
    assert exactly is not None
    assert exactly.count == 2


def test_a_toleration() -> None:
    for text, operator, value in (("k=v:NoSchedule", "Equal", "v"), ("k:NoExecute", "Exists", "")):
        exactly = amended(change(ChangeKind.TOLERATE, after=text)).spec.devices.requests[0].exactly
        assert exactly is not None
        (toleration,) = exactly.tolerations
        assert (toleration.key, toleration.operator, toleration.value or "") == ("k", operator, value)


def test_a_lower_capacity() -> None:
    exactly = amended(change(ChangeKind.LOWER_CAPACITY, after="20Gi memory")).spec.devices.requests[0].exactly
    assert exactly is not None
    assert exactly.capacity is not None
    assert dict(exactly.capacity.requests) == {"memory": quantity.Quantity.parse("20Gi")}


def test_a_dropped_selector_constraint_and_request() -> None:
    document = codec.encode(claim())
    exactly = document["spec"]["devices"]["requests"][0]["exactly"]
    exactly["selectors"] = [{"cel": {"expression": "true"}}, {"cel": {"expression": "false"}}]
    document["spec"]["devices"]["constraints"] = [{"matchAttribute": "example.com/root"}]
    document["spec"]["devices"]["requests"].append({"name": "nic", "exactly": {"deviceClassName": "nic"}})
    full = codec.decode(document)
    assert isinstance(full, resourceclaim.ResourceClaim)
    dropped = amended(change(ChangeKind.DROP_SELECTOR, number=1), full).spec.devices.requests[0].exactly
    assert dropped is not None
    assert [str(each.cel.expression) for each in dropped.selectors if each.cel] == ["true"]
    assert amended(change(ChangeKind.DROP_CONSTRAINT, request="", number=0), full).spec.devices.constraints == ()
    requests = amended(change(ChangeKind.DROP_REQUEST, request="nic"), full).spec.devices.requests
    assert [each.name for each in requests] == ["gpu"]


@pytest.mark.parametrize("kind", [ChangeKind.FREE_CLAIM, ChangeKind.DROP_CLASS_SELECTOR])
def test_changes_of_other_objects_change_no_claim(kind: ChangeKind) -> None:
    other = Change(kind=kind, size=1, subject="default/other")
    assert amendment.apply(other, (claim(),)) is None
