"""Patches of claims on the protobuf form: named fields change, and all other bytes stay as they are."""

from typing import Any

import pytest

from drachma import errors
from drachma.api import meta, resourceclaim, types
from drachma.client import http, patches, protobufclaims
from drachma.client.refusal import error
from drachma.server.decoding.protobuf import decoding
from tests.unit.client.fakeserver import Answer, refused
from tests.unit.client.test_http import MANAGED, NEWEST, client_of

Document = dict[str, Any]

PARAMETERS = b'{ "memory":  "1Gi" }'
CLAIM = resourceclaim.ResourceClaim(
    metadata=meta.ObjectMeta(name="c", namespace="ns", uid="u", resource_version="7", finalizers=("a",))
)
PATH = "/prefix/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c"


def _part(number: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    length = bytes([len(data)]) if len(data) < 128 else bytes([len(data) & 0x7F | 0x80, len(data) >> 7])
    return bytes([number << 3 | 2]) + length + data


def _consumer(name: str) -> bytes:
    return _part(3, "pods") + _part(4, name) + _part(5, f"uid-{name}")


METADATA = _part(1, "c") + _part(3, "ns") + _part(5, "u") + _part(6, "7") + bytes([7 << 3, 3]) + _part(14, "a")
OPAQUE = _part(1, "gpu.example.com") + _part(2, _part(1, PARAMETERS))
CONFIG = _part(1, "FromClaim") + _part(3, _part(1, OPAQUE))
RESULT = _part(1, "r") + _part(2, "gpu.example.com") + _part(3, "pool") + _part(4, "gpu-0")
ALLOCATION = _part(1, _part(1, RESULT) + _part(2, CONFIG))
STATUS = _part(1, ALLOCATION) + _part(2, _consumer("one")) + _part(2, _consumer("two"))
MESSAGE = _part(1, METADATA) + _part(2, b"") + _part(3, STATUS)
BODY = b"k8s\x00" + _part(1, _part(1, "resource.k8s.io/v1") + _part(2, "ResourceClaim")) + _part(2, MESSAGE)


def _decode(body: bytes) -> Document:
    return decoding.decode(body, lambda _, __: types.get("resource.k8s.io/v1.ResourceClaim"))


def test_finalizers_are_replaced_and_bytes_stay() -> None:
    edited = protobufclaims.edit(
        BODY, patches.merge({"metadata": {"finalizers": ["a", "b"]}}, patches.unchanged(CLAIM))
    )
    assert _decode(edited)["metadata"] == {**_decode(BODY)["metadata"], "finalizers": ["a", "b"]}
    assert PARAMETERS in edited
    assert ALLOCATION in edited


def test_the_last_finalizer_is_removed() -> None:
    edited = protobufclaims.edit(BODY, patches.merge({"metadata": {"finalizers": None}}))
    assert "finalizers" not in _decode(edited)["metadata"]


@pytest.mark.parametrize(
    ("patch", "want"),
    [
        pytest.param(
            patches.merge({"status": {"reservedFor": [{"resource": "pods", "name": "three", "uid": "uid-three"}]}}),
            ["three"],
            id="replaced",
        ),
        pytest.param(patches.merge({"status": {"reservedFor": None}}), [], id="removed"),
        pytest.param(
            patches.strategic({"status": {"reservedFor": [{"$patch": "delete", "uid": "uid-one"}]}}),
            ["two"],
            id="one-removed",
        ),
    ],
)
def test_consumers(patch: patches.Patch, want: list[str]) -> None:
    edited = protobufclaims.edit(BODY, patch)
    assert [each["name"] for each in _decode(edited)["status"].get("reservedFor", ())] == want
    assert ALLOCATION in edited


def test_an_allocation_is_removed() -> None:
    edited = protobufclaims.edit(BODY, patches.merge({"status": {"allocation": None, "reservedFor": None}}))
    assert not _decode(edited).get("status")


def test_preconditions_go_with_the_claim() -> None:
    known = patches.Preconditions(uid="other", resource_version="6")
    edited = protobufclaims.edit(BODY, patches.merge({"metadata": {"finalizers": None}}, known))
    metadata = _decode(edited)["metadata"]
    assert (metadata["uid"], metadata["resourceVersion"]) == ("other", "6")


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param(patches.merge({"spec": {}}), id="spec"),
        pytest.param(patches.merge({"metadata": {"labels": {"a": "b"}}}), id="labels"),
        pytest.param(patches.merge({"status": {"allocation": {"devices": {}}}}), id="new-allocation"),
        pytest.param(patches.json([{"op": "remove", "path": "/status"}]), id="json"),
    ],
)
def test_other_patches_are_not_edits(patch: patches.Patch) -> None:
    assert not protobufclaims.can_edit(patch)
    with pytest.raises(errors.InvalidValueError, match="cannot be edited"):
        protobufclaims.edit(BODY, patch)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{}", id="json"),
        pytest.param(BODY[:-1], id="cut-off"),
        pytest.param(b"k8s\x00\x0b", id="group"),
        pytest.param(b"k8s\x00" + b"\xff" * 12, id="long-number"),
    ],
)
def test_bodies_that_are_no_claims(body: bytes) -> None:
    with pytest.raises(errors.DecodeError, match="claim"):
        protobufclaims.edit(body, patches.merge({"metadata": {"finalizers": None}}))


@pytest.mark.parametrize(
    ("field", "rule", "want"),
    [
        pytest.param("spec", "field is immutable", True, id="spec"),
        pytest.param("status.allocation", "field cannot be modified once set", True, id="allocation"),
        pytest.param("metadata.name", "field is immutable", False, id="name"),
        pytest.param("status.allocation", "Required value", False, id="another-rule"),
    ],
)
def test_refusals_because_of_lost_bytes(field: str, rule: str, want: bool) -> None:
    causes = [{"field": field, "message": f"Invalid value: {{}}: {rule}"}]
    refusal = error({"reason": "Invalid", "code": 422, "details": {"causes": causes}})
    assert isinstance(refusal, errors.InvalidObjectError)
    assert protobufclaims.is_caused_by_lost_bytes(refusal) is want


IMMUTABLE = refused(422, "Invalid", causes=[{"field": "spec", "message": "Invalid value: {}: field is immutable"}])
CONFLICT = refused(409, "Conflict")
STORED = Answer(body={"metadata": {"name": "c", "namespace": "ns", "finalizers": ["a", "b"]}, "spec": {}})


async def _patch(client: http.HttpClient, *preconditions: patches.Preconditions) -> resourceclaim.ResourceClaim:
    patch = patches.merge({"metadata": {"finalizers": ["a", "b"]}}, *preconditions)
    return await client.patch(resourceclaim.ResourceClaim, "c", namespace="ns", patch=patch)


async def test_a_refused_patch_is_carried_out_in_protobuf() -> None:
    async with client_of(NEWEST, IMMUTABLE, Answer(body=BODY), STORED) as (client, server):
        claim = await _patch(client, patches.unchanged(CLAIM))
    assert claim.metadata.finalizers == ("a", "b")
    assert server.lines[1:] == [f"PATCH {PATH}?{MANAGED}", f"GET {PATH}", f"PUT {PATH}?{MANAGED}"]
    assert server.asked[2].headers["Accept"] == server.asked[3].headers["Content-Type"] == protobufclaims.MEDIA_TYPE
    assert PARAMETERS in server.asked[3].body


async def test_a_conflict_is_tried_again_only_without_a_required_version() -> None:
    answers = (NEWEST, IMMUTABLE, Answer(body=BODY), CONFLICT)
    async with client_of(*answers, Answer(body=BODY), STORED) as (client, server):
        await _patch(client, patches.same(CLAIM))
        assert len(server.asked) == 6
    async with client_of(*answers) as (client, _):
        with pytest.raises(errors.ObjectConflictError):
            await _patch(client, patches.unchanged(CLAIM))
