"""OpenAPI documents: complete in themselves, and with what kubectl looks for in them."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.unit.server import served

SURFACE = served.surface()
VERSIONS = [
    pytest.param(f"apis/{group.name}/{version}" if group.name else f"api/{version}", id=f"{group.name}-{version}")
    for group in SURFACE.groups
    for version in group.versions
]


def _document(path: str) -> dict[str, Any]:
    served = SURFACE.openapi_document(path)
    assert served is not None
    document: dict[str, Any] = msgspec.json.decode(served.data)
    return document


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        for part in value.values():
            yield from _references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _references(part)


@pytest.mark.parametrize("path", VERSIONS)
def test_every_reference_is_defined(path: str) -> None:
    document = _document(path)
    assert set(_references(document)) <= set(document["components"]["schemas"])


def test_every_reference_of_version_2_is_defined() -> None:
    document = msgspec.json.decode(SURFACE.swagger().data)
    assert set(_references(document)) <= set(document["definitions"])


@pytest.mark.parametrize("path", VERSIONS)
def test_kinds_are_found_by_their_paths_and_patches_take_the_parameters_kubectl_asks_about(path: str) -> None:
    document = _document(path)
    group, version = ("", "v1") if path == "api/v1" else path.split("/")[1:]
    marked = [
        mark
        for each in document["components"]["schemas"].values()
        for mark in each.get("x-kubernetes-group-version-kind", [])
    ]
    for resource in SURFACE.resources_in(group, version):
        if resource.traits.is_question:
            continue
        place = "namespaces/{namespace}/" if resource.namespaced else ""
        item = document["paths"][f"/{path}/{place}{resource.plural}/{{name}}"]
        kind = {"group": group, "version": version, "kind": resource.kind}
        assert item["get"]["x-kubernetes-group-version-kind"] == kind
        assert kind in marked
        assert {**kind, "kind": f"{resource.kind}List"} in marked
        names = {parameter["name"] for parameter in item["patch"]["parameters"]}
        assert names == {"dryRun", "fieldManager", "fieldValidation", "force"}


def test_merge_rules_are_told() -> None:
    containers = _document("api/v1")["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    del containers["description"]
    assert containers == {
        "type": "array",
        "items": {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-patch-merge-key": "name",
        "x-kubernetes-patch-strategy": "merge",
    }


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, id=each)
        for each in ("ResourceClaim", "DeviceRequest", "ExactDeviceRequest", "ResourceSliceSpec", "DeviceClassSpec")
    ],
)
def test_kinds_and_types_of_devices_have_a_text(name: str) -> None:
    definition = _document("apis/resource.k8s.io/v1")["components"]["schemas"][f"io.k8s.api.resource.v1.{name}"]
    assert definition["description"]


@pytest.mark.parametrize("path", VERSIONS)
def test_kubectl_explain_has_a_text_for_every_field(path: str) -> None:
    schemas = _document(path)["components"]["schemas"]
    without = [
        f"{name}.{field}"
        for name, schema in schemas.items()
        for field, value in schema.get("properties", {}).items()
        if not value.get("description")
    ]
    assert not without


def test_two_kinds_of_one_name_have_texts_of_their_own() -> None:
    definitions = _document("api/v1")["components"]["schemas"]
    assert definitions["io.k8s.api.core.v1.ResourceClaim"]["description"].startswith("A container's use")


def test_the_index_carries_the_hash_of_each_document() -> None:
    paths = msgspec.json.decode(SURFACE.openapi_index())["paths"]
    served = SURFACE.openapi_document("api/v1")
    assert served is not None
    assert paths["api/v1"] == {"serverRelativeURL": f"/openapi/v3/api/v1?hash={served.hash}"}
    assert "apis/resource.k8s.io/v1beta1" in paths


@pytest.mark.parametrize("path", ["api/v2", "apis/nope.example.com/v1", "apis//v1", "apis", ""])
def test_what_is_not_served_has_no_document(path: str) -> None:
    assert SURFACE.openapi_document(path) is None
