"""Bytes and documents to objects and back: exact round trips, and errors that name path, wanted type and value."""

import json
from typing import Any

import pytest

from drachma import errors
from drachma.api import codec, nodeallocatable, resourceclaim, resourceslice
from drachma.testing import claim, device, node, pod, resource_slice


def document(spec: Any = None, *, kind: str = "ResourceClaim", version: str = "resource.k8s.io/v1") -> dict[str, Any]:
    metadata = {"name": "c", "namespace": "ns"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **({} if spec is None else {"spec": spec})}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(document(), id="nothing-but-metadata"),
        pytest.param(document({"devices": {"requests": []}}), id="explicit-empty-list"),
        pytest.param(document({"devices": {"requests": [{"name": ""}]}}), id="explicit-empty-text"),
        pytest.param(document({"devices": {"requests": [{"name": "r", "exactly": {"count": 0}}]}}), id="explicit-zero"),
        pytest.param(
            document({"devices": {"requests": [{"name": "r", "exactly": {"adminAccess": False}}]}}), id="explicit-false"
        ),
        pytest.param(
            document({"devices": {"config": [{"opaque": {"driver": "d", "parameters": {"a": None, "b": [None]}}}]}}),
            id="null-inside-opaque-parameters",
        ),
        pytest.param(
            document({"driver": "d", "devices": [{"name": "x", "capacity": {"m": {"value": "0.5Gi"}}}]})
            | {"kind": "ResourceSlice"},
            id="quantity-not-in-canonical-form",
        ),
        pytest.param(
            document({"driver": "d", "devices": [{"name": "x", "attributes": {"a": {"ints": []}, "b": {"int": 0}}}]})
            | {"kind": "ResourceSlice"},
            id="attribute-lists-and-zero",
        ),
    ],
)
def test_round_trip_keeps_the_form(given: dict[str, Any]) -> None:
    assert codec.encode(codec.decode(given)) == given
    assert json.loads(codec.encode_json(codec.decode_json(json.dumps(given)))) == given


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_json_and_documents_agree(version: str) -> None:
    built = claim("c").request("gpu", device_class="gpu.example.com", count=2, select="device.driver == 'd'").build()
    api_version = f"resource.k8s.io/{version}"
    assert json.loads(codec.encode_json(built, api_version=api_version)) == codec.encode(built, api_version=api_version)
    assert codec.decode_json(codec.encode_json(built, api_version=api_version)) == built


def test_null_is_absent() -> None:
    given = document({"devices": {"requests": None}}) | {"status": None}
    given["metadata"] |= {"creationTimestamp": None, "labels": None}
    assert codec.encode(codec.decode_json(json.dumps(given))) == document({"devices": {}})


def test_numbers_are_quantities() -> None:
    given = {
        "apiVersion": "v1",
        "kind": "Node",
        "status": {"allocatable": {"cpu": 4, "memory": 1.5, "pods": 1e3, "x": " 1Gi "}},
    }
    allocatable = codec.encode(codec.decode(given))["status"]["allocatable"]
    assert allocatable == {"cpu": "4", "memory": "1.5", "pods": "1000", "x": "1Gi"}


@pytest.mark.parametrize(
    ("given", "want_error"),
    [
        pytest.param([], "expected an object, found a list", id="not-an-object"),
        pytest.param({"kind": "Pod"}, "apiVersion: expected a non-empty string, found nothing", id="no-version"),
        pytest.param(
            {"apiVersion": "v1", "kind": 7}, "kind: expected a non-empty string, found number 7", id="kind-not-text"
        ),
        pytest.param(document(kind="Gadget"), "unknown kind Gadget in resource.k8s.io/v1: known kinds are", id="kind"),
        pytest.param(
            document(version="resource.k8s.io/v2"),
            "kind ResourceClaim does not exist in resource.k8s.io/v2: "
            "it is served in resource.k8s.io/v1, resource.k8s.io/v1beta2, resource.k8s.io/v1beta1",
            id="version",
        ),
        pytest.param(document([]), "ResourceClaim ns/c: spec: expected an object, found a list", id="spec-is-a-list"),
        pytest.param(
            document({"devices": {"requests": [{"name": "r", "exactly": {"count": "2"}}]}}),
            'ResourceClaim ns/c: spec.devices.requests[0].exactly.count: expected a 64-bit integer, found string "2"',
            id="text-for-number",
        ),
        pytest.param(
            document({"devices": {"requests": [{"name": True}, {"exactly": {"count": 2**63}}]}}),
            "ResourceClaim ns/c: spec.devices.requests[0].name: expected a string, found boolean true; "
            "spec.devices.requests[1].exactly.count: expected a 64-bit integer, found number 9223372036854775808",
            id="all-problems-at-once",
        ),
        pytest.param(
            document({"devices": [{"name": "x", "capacity": {"a.b/memory": {"value": "1 Gi"}}}]}, kind="ResourceSlice"),
            "spec.devices[0].capacity[a.b/memory].value: expected quantity, found '1 Gi' (",
            id="bad-quantity-names-the-map-key",
        ),
        pytest.param(
            document({"devices": [{"name": "x", "taints": [{"timeAdded": "today"}]}]}, kind="ResourceSlice"),
            'spec.devices[0].taints[0].timeAdded: expected an RFC 3339 time, found string "today"',
            id="bad-time",
        ),
        pytest.param(
            document(
                {"devices": {"requests": [{"name": "r", "selectors": {"cel": {}}}]}}, version="resource.k8s.io/v1beta1"
            ),
            "spec.devices.requests[0].selectors: expected a list, found an object",
            id="paths-are-those-of-the-version-given",
        ),
    ],
)
def test_decode_errors(given: Any, want_error: str) -> None:
    with pytest.raises(errors.DecodeError) as caught:
        codec.decode(given)
    assert want_error in str(caught.value)
    with pytest.raises(errors.DecodeError) as caught:
        codec.decode_json(json.dumps(given))


@pytest.mark.parametrize("text", ["", "{", "nope", '{"apiVersion":"v1","kind":"Pod"} x', b"\xff"])
def test_what_is_not_json(text: str | bytes) -> None:
    with pytest.raises(errors.DecodeError, match="not JSON"):
        codec.decode_json(text)


def test_unknown_fields_are_reported_with_their_path() -> None:
    given = document(
        {"devices": {"requests": [{"name": "a", "exactly": {"countt": 1}}, {"nam": "b"}]}, "controller": "x"}
    ) | {"extra": 1}
    given["metadata"]["labels"] = {"any": "label"}
    assert codec.unknown_fields(given) == (
        "spec.devices.requests[0].exactly.countt",
        "spec.devices.requests[1].nam",
        "spec.controller",
        "extra",
    )


def test_partial_views_know_no_unknown_fields() -> None:
    assert codec.unknown_fields({"apiVersion": "v1", "kind": "Pod", "spec": {"hostPID": True}}) == ()


def test_both_spellings_of_node_allocatable_resources() -> None:
    given = document({"driver": "d", "devices": []}, kind="ResourceSlice")
    given["spec"]["devices"] = [
        {"name": "kep", "nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "2"}, "memory": {}}},
        {"name": "kep-capacity", "nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "cores"}}},
        {"name": "released", "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "2"}}}},
    ]
    stored_object = codec.decode(given)
    assert codec.encode(stored_object) == given
    assert isinstance(stored_object, resourceslice.ResourceSlice)
    kep, capacity, released = (nodeallocatable.resources_of(entry) for entry in stored_object.spec.devices)
    assert kep["cpu"] == released["cpu"]
    assert str(kep["memory"].mapping and kep["memory"].mapping.device_multiplier) == "1"
    assert capacity["cpu"].mapping == nodeallocatable.NodeAllocatableMapping(capacity_key="cores")


def test_absent_reads_as_zero() -> None:
    stored_object = codec.decode(document())
    assert isinstance(stored_object, resourceclaim.ResourceClaim)
    assert stored_object.spec.devices.requests == ()
    assert stored_object.metadata.labels == {}
    assert stored_object.metadata.uid == ""


def test_absent_maps_cannot_be_changed() -> None:
    labels: Any = node("n").build().metadata.labels
    with pytest.raises(TypeError, match="cannot be changed"):
        labels["a"] = "b"


@pytest.mark.parametrize(
    "built",
    [
        pytest.param(
            pod("p").container("c", requests={"cpu": "1"}, claims=("gpu/r",)).claim("gpu", claim="c"), id="pod"
        ),
        pytest.param(node("n"), id="node"),
        pytest.param(resource_slice("s", driver="d").on_all_nodes().devices("a", device("b").shared()), id="slice"),
    ],
)
def test_python_objects_survive(built: Any) -> None:
    assert codec.decode_json(codec.encode_json(built.build())) == built.build()
