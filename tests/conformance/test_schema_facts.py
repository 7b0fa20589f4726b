"""Our types of resource.k8s.io, core and batch kinds against the OpenAPI documents of a real API server."""

from typing import Any

import msgspec
import pytest

from drachma.api import types
from tests.conformance import vectors
from tests.conformance.vectors import Line
from tests.unit.server import served

_LONG_TEXT = 80

_DOCUMENTS = {
    "v1": "api_v1.json",
    "batch/v1": "apis_batch_v1.json",
    "resource.k8s.io/v1": "apis_resource.k8s.io_v1.json",
    "resource.k8s.io/v1beta1": "apis_resource.k8s.io_v1beta1.json",
    "resource.k8s.io/v1beta2": "apis_resource.k8s.io_v1beta2.json",
}
_OURS = {
    ("DeviceClassSpec", "managesNativeResources"),
    ("DeviceClassSpec", "managesNodeAllocatableResources"),
    ("DeviceClassSpec", "nodeAllocatableResourceAccountingPolicies"),
    ("NodeAllocatableResource", "accountingPolicy"),
    ("Device", "nodeAllocatableResourceMappings"),
    ("BasicDevice", "nodeAllocatableResourceMappings"),
}
"""Fields of the enhancement proposals that Kubernetes 1.37 does not have."""


def _cases() -> list[Any]:
    return [
        pytest.param(each.api_version(version), each.kind, id=f"{each.api_version(version)}-{each.kind}")
        for each in served.CATALOG.resources
        for version in each.versions
        if each.api_version(version) in _DOCUMENTS
    ]


@pytest.mark.parametrize(("api_version", "kind"), _cases())
def test_types_are_those_of_the_real_server(api_version: str, kind: str) -> None:
    definitions = vectors.openapi(_DOCUMENTS[api_version])
    todo, seen = [served.schema(api_version, kind)], set()
    while todo:
        found = todo.pop()
        if found.definition in seen:
            continue
        seen.add(found.definition)
        want = definitions[found.definition]
        ours = {name for name in found.fields if (found.name, name) not in _OURS}
        assert ours == set(want.get("properties", {})), found.definition
        assert found.atomic == (want.get("x-kubernetes-map-type") == "atomic"), found.definition
        for name in ours:
            _assert_field(found.fields[name], want["properties"][name], want.get("required", []))
            _assert_key_defaults(found.fields[name].type, definitions)
            todo.extend(_parts(found.fields[name].type))


def _assert_field(field: types.Field, want: dict[str, Any], required: list[str]) -> None:
    assert field.required == (field.name in required), field.name
    if isinstance(field.type, types.Object):
        assert field.filled == (want.get("default") == {}), field.name
    strategies = want.get("x-kubernetes-patch-strategy", "").split(",")
    assert field.merges == ("merge" in strategies), field.name
    assert field.retains_keys == ("retainKeys" in strategies), field.name
    assert field.merge_key == want.get("x-kubernetes-patch-merge-key", ""), field.name
    if isinstance(field.type, types.ListOf):
        assert want["type"] == "array", field.name
        keys: dict[str, list[str] | None] = {"atomic": None, "set": [], "map": want.get("x-kubernetes-list-map-keys")}
        found = field.type.keys if field.type.keys is None else list(field.type.keys)
        assert found == keys[want["x-kubernetes-list-type"]], field.name
    elif isinstance(field.type, types.MapOf):
        assert "additionalProperties" in want, field.name
        assert field.type.atomic == (want.get("x-kubernetes-map-type") == "atomic"), field.name
    elif isinstance(field.type, types.Scalar) and field.type.json:
        assert want["type"] == field.type.json, field.name
        assert want.get("format", "") == field.type.format, field.name


def _assert_key_defaults(kind: types.Type, definitions: dict[str, Any]) -> None:
    if isinstance(kind, types.ListOf) and isinstance(kind.element, types.Object):
        want = definitions[kind.element.definition]["properties"]
        for key in kind.keys or ():
            assert kind.element.fields[key].default == want[key].get("default"), (kind.element.name, key)


def _parts(kind: types.Type) -> list[types.Object]:
    match kind:
        case types.Object():
            return [kind]
        case types.MapOf() | types.ListOf():
            return _parts(kind.element)
        case _:
            return []


def test_descriptions_are_our_own() -> None:
    """Names and types are upstream's. Texts are not: only short ones are equal, by chance."""
    upstream = _descriptions(vectors.openapi("apis_resource.k8s.io_v1.json"))
    document = served.surface().openapi_document("apis/resource.k8s.io/v1")
    assert document is not None
    ours = _descriptions(msgspec.json.decode(document.data)["components"]["schemas"])
    common = upstream.keys() & ours.keys()
    assert len(common) > 100
    assert not [field for field in common if ours[field] == upstream[field] and len(ours[field]) > _LONG_TEXT]


def _descriptions(schemas: Line) -> dict[tuple[str, str], str]:
    """Return the description of every field, by the last part of its type's name."""
    return {
        (name.rpartition(".")[2], field): value.get("description", "")
        for name, schema in schemas.items()
        for field, value in schema.get("properties", {}).items()
    }
