"""The definitions of Kueue's kinds: every field has a text, and types of Kubernetes stand in full."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from drachma.server.kinds.kueue import queuekinds

_FOLDER = pathlib.Path(queuekinds.__file__).parent / "definitions"
_VERSIONS = [
    pytest.param(version["schema"]["openAPIV3Schema"], id=f"{file.stem}-{version['name']}")
    for file in sorted(_FOLDER.glob("*.json"))
    for version in json.loads(file.read_text(encoding="utf-8"))["spec"]["versions"]
]


def _fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, str | None]]:
    for name, field in schema.get("properties", {}).items():
        if path or name not in ("apiVersion", "kind", "metadata"):
            yield f"{path}.{name}", field.get("description")
        yield from _fields(field, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from _fields(schema["items"], path)


@pytest.mark.parametrize("schema", _VERSIONS)
def test_every_field_has_a_text(schema: dict[str, Any]) -> None:
    assert schema["description"]
    assert [path for path, text in _fields(schema) if not text] == []


def test_all_definitions_are_served() -> None:
    assert {kind.plural for kind in queuekinds.kinds()} == {file.stem for file in _FOLDER.glob("*.json")}


def test_types_of_kubernetes_stand_in_full() -> None:
    workload = next(kind for kind in queuekinds.kinds() if kind.kind == "Workload")
    written = workload.schema("v1beta2").written
    assert written is not None
    template = written["properties"]["spec"]["properties"]["podSets"]["items"]["properties"]["template"]
    assert set(template["properties"]["metadata"]["properties"]) == {
        "annotations",
        "finalizers",
        "labels",
        "name",
        "namespace",
    }
    containers = template["properties"]["spec"]["properties"]["containers"]
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["items"]["properties"]["ports"]["items"]["properties"]["protocol"]["default"] == "TCP"
