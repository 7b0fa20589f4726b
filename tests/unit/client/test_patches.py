"""Patches: what is sent for each kind, and how preconditions get into it."""

from typing import Any

import msgspec
import pytest

from drachma import errors
from drachma.api import meta, resourceclaim
from drachma.client import patches
from drachma.testing import claim

KNOWN = claim("c").uid("u-1").build()
CONSUMER = resourceclaim.ResourceClaimConsumerReference(resource="pods", name="p", uid="u-2")


def body(patch: patches.Patch) -> Any:
    return msgspec.json.decode(patch.data)


@pytest.mark.parametrize(
    ("patch", "want_type", "want_body", "want_idempotent"),
    [
        pytest.param(
            patches.merge({"status": {"reservedFor": (CONSUMER,), "allocation": None}}),
            "application/merge-patch+json",
            {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u-2"}], "allocation": None}},
            True,
            id="merge-with-structs-and-nulls",
        ),
        pytest.param(
            patches.merge({"metadata": {"labels": {"a": "b"}}}, patches.Preconditions("u-1", "7")),
            "application/merge-patch+json",
            {"metadata": {"labels": {"a": "b"}, "uid": "u-1", "resourceVersion": "7"}},
            True,
            id="merge-guarded",
        ),
        pytest.param(
            patches.strategic({"status": {"conditions": [{"type": "Ready"}]}}, patches.same(KNOWN)),
            "application/strategic-merge-patch+json",
            {"status": {"conditions": [{"type": "Ready"}]}, "metadata": {"uid": "u-1"}},
            False,
            id="strategic-same-object",
        ),
        pytest.param(
            patches.json([{"op": "remove", "path": "/status/allocation"}], patches.Preconditions("u-1", "7")),
            "application/json-patch+json",
            [
                {"op": "test", "path": "/metadata/uid", "value": "u-1"},
                {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
                {"op": "remove", "path": "/status/allocation"},
            ],
            True,
            id="json-guarded",
        ),
        pytest.param(
            patches.json([{"op": "add", "path": "/metadata/finalizers/-", "value": "f"}]),
            "application/json-patch+json",
            [{"op": "add", "path": "/metadata/finalizers/-", "value": "f"}],
            False,
            id="json-that-must-not-be-repeated",
        ),
        pytest.param(
            patches.apply({"spec": {}}, force=True), "application/apply-patch+yaml", {"spec": {}}, True, id="apply"
        ),
    ],
)
def test_what_is_sent(patch: patches.Patch, want_type: str, want_body: Any, want_idempotent: bool) -> None:
    assert (patch.media_type, body(patch), patch.is_idempotent) == (want_type, want_body, want_idempotent)


def test_unchanged_is_uid_and_version() -> None:
    current = msgspec.structs.replace(KNOWN, metadata=msgspec.structs.replace(KNOWN.metadata, resource_version="9"))
    assert patches.unchanged(current) == patches.Preconditions("u-1", "9")


def test_a_patch_is_what_it_was_when_it_was_made() -> None:
    content: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}}
    patch = patches.merge(content)
    content["metadata"]["labels"]["a"] = "c"
    assert body(patch) == {"metadata": {"labels": {"a": "b"}}}


def test_structs_can_be_guarded() -> None:
    patch = patches.merge({"metadata": meta.ObjectMeta(labels={"a": "b"})}, patches.same(KNOWN))
    assert body(patch) == {"metadata": {"labels": {"a": "b"}, "uid": "u-1"}}


def test_a_contradiction_is_refused() -> None:
    with pytest.raises(errors.InvalidValueError, match=r"metadata\.uid is 'other', precondition is 'u-1'"):
        patches.merge({"metadata": {"uid": "other"}}, patches.same(KNOWN))


@pytest.mark.parametrize(
    ("patch", "want"),
    [
        pytest.param(patches.merge({"status": {}}), False, id="merge-of-status"),
        pytest.param(patches.merge({"spec": {}}), True, id="merge-of-spec"),
        pytest.param(patches.json([{"op": "remove", "path": "/status/spec"}]), False, id="json-below-status"),
        pytest.param(patches.json([{"op": "remove", "path": "/spec/devices"}]), True, id="json-below-spec"),
    ],
)
def test_touching_the_spec(patch: patches.Patch, want: bool) -> None:
    assert patch.touches_spec is want
