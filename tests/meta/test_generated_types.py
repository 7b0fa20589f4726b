"""The script that writes type files: what it takes from documents, what it keeps, and what it leaves to decide."""

import importlib.util
import json
import pathlib
from types import ModuleType
from typing import Any

import pytest

from tests.conformance import vectors

PROJECT = pathlib.Path(__file__).parents[2]
FILES = PROJECT / "src" / "drachma" / "api" / "types"
CORE, META = "io.k8s.api.core.v1", "io.k8s.apimachinery.pkg.apis.meta.v1"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_types", PROJECT / "scripts" / "generate_types.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = _load()


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


DEFINITIONS = {
    f"{CORE}.Pod": {
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "A sentence of somebody else."},
            "kind": {"type": "string"},
            "metadata": {"allOf": [_reference(f"{META}.ObjectMeta")], "default": {}},
            "spec": {"allOf": [_reference(f"{CORE}.PodSpec")]},
        },
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
    },
    f"{CORE}.PodSpec": {
        "required": ["ports", "name"],
        "properties": {
            "ports": {
                "type": "array",
                "items": _reference(f"{CORE}.Port"),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port"],
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "port",
            },
            "name": {"type": "string", "default": ""},
            "selector": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "x-kubernetes-map-type": "atomic",
            },
            "limits": {
                "type": "object",
                "additionalProperties": _reference("io.k8s.apimachinery.pkg.api.resource.Quantity"),
            },
            "seconds": {"type": "integer", "format": "int64"},
            "data": {"type": "string", "format": "byte"},
        },
    },
    f"{CORE}.Port": {"properties": {"port": {"type": "integer", "format": "int32", "default": 80}}},
    f"{CORE}.Unrelated": {"properties": {"a": {"type": "string"}}},
    f"{META}.ObjectMeta": {"properties": {"name": {"type": "string"}}},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
}


def _files() -> dict[str, Any]:
    seconds = {"type": "int64", "pointer": True, "number": 7}
    pod = {name: {"type": "string"} for name in ("apiVersion", "kind")} | {"spec": {"type": "PodSpec"}}
    types = {
        "Pod": {"fields": pod},
        "PodSpec": {"fields": {"seconds": seconds, "old": {"type": "Old"}}},
        "Old": {"fields": {"a": {"type": "string"}}},
        "Service": {"fields": {name: {"type": "string"} for name in ("apiVersion", "kind")}},
    }
    job = {name: {"type": "string"} for name in ("apiVersion", "kind")} | {"old": {"type": "core/v1.Kept"}}
    types["Kept"] = {"fields": {}}
    return {
        "core": {"v1": {"package": CORE, "types": types}},
        "meta": {"v1": {"package": META, "types": {"ObjectMeta": {"fields": {}}}}},
        "batch": {"v1": {"package": "io.k8s.api.batch.v1", "types": {"Job": {"fields": job}}}},
    }


def _generator(numbers: dict[str, dict[str, int]] | None = None) -> Any:
    release = script.Release(DEFINITIONS, frozenset({script.Place("core", "v1")}), numbers or {})
    return script.Generator(_files(), release)


def test_facts_are_taken_from_documents_and_files() -> None:
    generator = _generator({f"{CORE}.PodSpec": {"ports": 2}})
    types = generator.generate()["core"]["v1"]["types"]
    assert types["Pod"]["fields"]["metadata"] == {"type": "meta/v1.ObjectMeta", "always": True}
    assert types["PodSpec"]["fields"] == {
        "data": {"type": "bytes"},
        "limits": {"type": "map[string]Quantity"},
        "name": {"type": "string", "required": True},
        "ports": {
            "type": "[]Port",
            "list": "map",
            "keys": ["port"],
            "required": True,
            "patch": "merge",
            "number": 2,
        },
        "seconds": {"type": "int64", "pointer": True, "number": 7},
        "selector": {"type": "map[string]string", "map": "atomic"},
    }
    assert types["Port"]["fields"] == {"port": {"type": "int32", "default": 80}}


def test_types_that_nothing_refers_to_go() -> None:
    generator = _generator()
    files = generator.generate()
    assert set(files["core"]["v1"]["types"]) == {"Kept", "Pod", "PodSpec", "Port"}
    assert set(files["batch"]["v1"]["types"]) == {"Job"}, "no document describes batch"
    assert {f"{CORE}.Old: gone", f"{CORE}.Service: gone", f"{CORE}.PodSpec.old: gone"} <= set(generator.remarks)


def test_decisions_are_named() -> None:
    generator = _generator()
    generator.generate()
    assert f"{CORE}.PodSpec.ports: new; decide: always, number" in generator.remarks
    assert f"{META}.ObjectMeta.name: new; decide: pointer, number" in generator.remarks


def test_a_kind_can_be_added() -> None:
    generator = _generator()
    with pytest.raises(ValueError, match="no document"):
        generator.add_kind("core/v1.Nope")
    generator.add_kind("core/v1.Pod")
    assert generator.generate()["core"]["v1"]["types"]["Pod"]["fields"]


def test_protobuf_numbers(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "core" / "v1"
    folder.mkdir(parents=True)
    (folder / "generated.proto").write_text(
        "package k8s.io.api.core.v1;\n\nmessage Pod {\n  // a comment\n  optional string name = 1;\n\n"
        "  repeated Port ports = 3;\n  map<string, string> labels = 11;\n}\n"
    )
    assert script.read_numbers(tmp_path) == {f"{CORE}.Pod": {"name": 1, "ports": 3, "labels": 11}}


def test_documents_are_read_from_a_folder(tmp_path: pathlib.Path) -> None:
    for name in ("api_v1", "apis_resource.k8s.io_v1"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"components": {"schemas": {name: {}}}}))
    release = script.read_release(str(tmp_path), None)
    assert set(release.definitions) == {"api_v1", "apis_resource.k8s.io_v1"}
    assert release.described == {script.Place("core", "v1"), script.Place("resource.k8s.io", "v1")}


def test_documents_are_read_from_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(path: str) -> dict[str, str]:
        return {"serverRelativeURL": f"/openapi/v3/{path}?hash=1"}

    pages: dict[str, Any] = {
        "http://server/openapi/v3": {"paths": {path: entry(path) for path in ("api", "api/v1", "apis/batch/v1")}},
        "http://server/openapi/v3/api/v1?hash=1": {"components": {"schemas": {"a": {}}}},
        "http://server/openapi/v3/apis/batch/v1?hash=1": {"components": {"schemas": {"b": {}}}},
    }
    monkeypatch.setattr(script, "_get", pages.__getitem__)
    release = script.read_release("http://server/", None)
    assert set(release.definitions) == {"a", "b"}
    assert release.described == {script.Place("core", "v1"), script.Place("batch", "v1")}


def test_the_command_writes_files_and_prints_decisions(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents, files = tmp_path / "openapi", tmp_path / "files"
    documents.mkdir()
    files.mkdir()
    (documents / "api_v1.json").write_text(json.dumps({"components": {"schemas": DEFINITIONS}}))
    for group, versions in _files().items():
        (files / f"{group}.json").write_text(json.dumps(versions))
    assert script.main([str(documents), "--files", str(files)]) == 0
    written = json.loads((files / "core.json").read_text())
    assert written["v1"]["types"]["Port"]["fields"] == {"port": {"type": "int32", "default": 80}}
    assert f"{CORE}.Old: gone" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    "file", [pytest.param(file, id=f"{file.parent.name}-{file.stem}") for file in sorted(FILES.glob("*/*.json"))]
)
def test_files_have_the_written_form(file: pathlib.Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert script.write(json.loads(text)) == text


def test_files_are_those_of_the_release() -> None:
    documents = vectors.folder().parent / "openapi"
    if not documents.is_dir():
        pytest.skip(vectors.required(documents))
    files = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in FILES.glob("kubernetes/*.json")}
    generator = script.Generator(files, script.read_release(str(documents), None))
    assert generator.generate() == files
    assert generator.remarks == []
