"""Writes src/drachma/api/types/kubernetes from the OpenAPI v3 documents of an API server, and says what is left to do.

Usage: python scripts/generate_types.py SOURCE [--protobuf FOLDER] [--kind GROUP/VERSION.KIND ...]

SOURCE is the address of a server that answers without credentials (``kubectl proxy``), or a folder with documents that
are named after their paths: ``api_v1.json``, ``apis_batch_v1.json``. FOLDER has files called ``generated.proto``, at
any depth. Groups that no document describes stay as they are.

Only facts are taken: names, types, merge strategies, defaults and numbers. Facts that these documents do not carry
(pointers, names of Go types) are kept for fields that the files have; for new fields the script prints what to decide.
docs/adr/0021-types-as-data.md describes the files.
"""

import argparse
import json
import pathlib
import re
import sys
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

FILES = pathlib.Path(__file__).resolve().parents[1] / "src" / "drachma" / "api" / "types" / "kubernetes"

Record = dict[str, Any]
Definitions = Mapping[str, Mapping[str, Any]]
Numbers = Mapping[str, Mapping[str, int]]
"""Protobuf numbers by message, then by field."""

_REFERENCE = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_PLAIN = {
    f"{_META}Time": "Time",
    f"{_META}MicroTime": "MicroTime",
    f"{_META}FieldsV1": "FieldsV1",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "Quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "IntOrString",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "RawExtension",
}
_FORMATS = {"int32": "int32", "int64": "int64", "double": "float64", "byte": "bytes"}
_SCALARS = {"string": "string", "boolean": "bool", "integer": "int64", "number": "float64"}
_ZEROS = {"string": "", "bool": False, "int32": 0, "int64": 0}
_SIMPLE = {*_PLAIN.values(), *_FORMATS.values(), *_SCALARS.values()}
_KEPT = ("pointer", "always", "goType", "goName", "goParent")
_ENVELOPE = {"apiVersion", "kind"}
_MEMBERS = (
    "type",
    "list",
    "keys",
    "map",
    "required",
    "pointer",
    "always",
    "default",
    "patch",
    "mergeKey",
    "goType",
    "goName",
    "goParent",
    "number",
)


class Place(NamedTuple):
    """The file and the version that have the types of a package."""

    group: str
    version: str


class Release(NamedTuple):
    """Facts about a release: definitions of types, the versions that are described in full, and numbers."""

    definitions: Definitions
    described: frozenset[Place]
    numbers: Numbers


class Generator:
    """Types of a release, from its documents and the files of the release before."""

    def __init__(self, files: Mapping[str, Record], release: Release) -> None:
        self._files = files
        self._definitions, self._described, self._numbers = release
        self._places = {
            record["package"]: Place(group, version)
            for group, versions in files.items()
            for version, record in versions.items()
        }
        self.remarks: list[str] = []
        """Decisions that are left to do, and types that went away."""

    def add_kind(self, reference: str) -> None:
        """Prepare a place for a kind that no file has; ValueError if no document describes it."""
        group, _, rest = reference.partition("/")
        version, _, kind = rest.partition(".")
        want = {"group": "" if group == "core" else group, "version": version, "kind": kind}
        name = next((name for name, each in self._definitions.items() if want in _served_kinds(each)), None)
        if name is None:
            raise ValueError(f"{reference}: no document has this kind")
        package = name.rpartition(".")[0]
        versions = self._files.get(group)
        if versions is None:
            raise ValueError(f"{reference}: there is no file {group}.json; write one that is {{}}")
        versions.setdefault(version, {"package": package, "types": {}})["types"].setdefault(kind, {"fields": {}})
        self._places[package] = Place(group, version)

    def generate(self) -> dict[str, Record]:
        """Return all files. Kinds of versions that no document describes stay, with the types that they refer to."""
        made: dict[str, Record] = {}
        todo = list(self._roots())
        while todo:
            name = todo.pop()
            package, _, short = name.rpartition(".")
            place = self._places.get(package)
            if name in made or place is None:
                continue
            before = self._files[place.group][place.version]["types"]
            if name in self._definitions:
                made[name] = self._type(name)
            elif short in before:
                made[name] = before[short]
            else:
                continue
            fields = made[name]["fields"].values()
            todo.extend(self._element(field["type"], package) for field in fields)
        files = {group: {version: dict(own) for version, own in each.items()} for group, each in self._files.items()}
        for package, place in self._places.items():
            own = {name.removeprefix(f"{package}."): each for name, each in made.items() if _package(name) == package}
            record = files[place.group][place.version]
            record["types"] = self._complete(own, record["types"], package=package)
        return files

    def _roots(self) -> Iterator[str]:
        """Yield the types that no other type refers to, but none that a document would have and does not."""
        referenced = {
            self._element(field["type"], package)
            for package, types in self._types()
            for each in types.values()
            for field in each["fields"].values()
        }
        for package, types in self._types():
            for name, record in types.items():
                whole = f"{package}.{name}"
                is_root = whole not in referenced or set(record["fields"]) >= _ENVELOPE
                if is_root and (whole in self._definitions or self._places[package] not in self._described):
                    yield whole

    def _types(self) -> Iterator[tuple[str, Record]]:
        for package, place in self._places.items():
            yield package, self._files[place.group][place.version]["types"]

    def _element(self, expression: str, package: str) -> str:
        """Return the definition that a type expression refers to; empty for types without parts."""
        element = expression.rpartition("]")[2]
        if element in _SIMPLE:
            return ""
        if "/" not in element:
            return f"{package}.{element}"
        group, _, rest = element.partition("/")
        version, _, name = rest.partition(".")
        return f"{self._files[group][version]['package']}.{name}"

    def _complete(self, made: Record, before: Record, *, package: str) -> Record:
        """Return the types of a version, with the messages that only protobuf knows, and remark what went away."""
        embedded = {part for each in made.values() for part in each.get("embedded", ())}
        while more := {part for name in embedded for part in before.get(name, {}).get("embedded", ())} - embedded:
            embedded |= more
        types = {**{name: each for name, each in before.items() if name in embedded}, **made}
        self.remarks += [f"{package}.{name}: gone" for name in before if name not in types]
        return dict(sorted(types.items()))

    def _type(self, name: str) -> Record:
        definition = self._definitions[name]
        package, _, short = name.rpartition(".")
        place = self._places[package]
        before = self._files[place.group][place.version]["types"].get(short, {"fields": {}})
        record: Record = {}
        if definition.get("x-kubernetes-map-type") == "atomic":
            record["atomic"] = True
        if "embedded" in before:
            record["embedded"] = before["embedded"]
        required = set(definition.get("required", ()))
        record["fields"] = {
            field: self._field(f"{name}.{field}", schema, before["fields"].get(field), required=field in required)
            for field, schema in sorted(definition.get("properties", {}).items())
        }
        self.remarks += [f"{name}.{field}: gone" for field in before["fields"] if field not in record["fields"]]
        return record

    def _field(self, name: str, schema: Mapping[str, Any], before: Record | None, *, required: bool) -> Record:
        owner, _, field = name.rpartition(".")
        expression = self._expression(schema, package=_package(owner))
        facts: Record = {"type": expression, "required": required}
        if before is not None:
            facts |= {key: before[key] for key in _KEPT if key in before}
        match schema.get("x-kubernetes-list-type"):
            case "set":
                facts["list"] = "set"
            case "map":
                facts |= {"list": "map", "keys": schema["x-kubernetes-list-map-keys"]}
        if schema.get("x-kubernetes-map-type") == "atomic" and expression.startswith("map"):
            facts["map"] = "atomic"
        default = schema.get("default")
        if default == {}:
            facts["always"] = True
        elif default is not None and not (required and default == _ZEROS.get(expression)):
            facts["default"] = default
        facts["patch"] = schema.get("x-kubernetes-patch-strategy", before.get("patch") if before else None)
        key = schema.get("x-kubernetes-patch-merge-key")
        if key and [key] != facts.get("keys", [])[:1]:
            facts["mergeKey"] = key
        facts["number"] = self._numbers.get(owner, {}).get(field, before.get("number") if before else None)
        if before is None:
            self._remark_decisions(name, facts)
        return {key: facts[key] for key in _MEMBERS if facts.get(key) not in (None, False) or key == "default" in facts}

    def _remark_decisions(self, name: str, facts: Record) -> None:
        open_questions = []
        if facts["type"] in _ZEROS and not facts["required"]:
            open_questions.append("pointer")
        if facts["required"] and facts["type"].startswith(("[", "map", "Time", "MicroTime")):
            open_questions.append("always")
        if facts["number"] is None:
            open_questions.append("number")
        decide = f"; decide: {', '.join(open_questions)}" if open_questions else ""
        self.remarks.append(f"{name}: new{decide}")

    def _expression(self, schema: Mapping[str, Any], *, package: str) -> str:
        reference = _reference(schema)
        if reference:
            return self._named(reference, package=package)
        kind = schema.get("type")
        if kind == "array":
            return "[]" + self._expression(schema["items"], package=package)
        if kind == "object" and "additionalProperties" in schema:
            return "map[string]" + self._expression(schema["additionalProperties"], package=package)
        if kind in _SCALARS:
            return _FORMATS.get(schema.get("format", ""), _SCALARS[kind])
        return "RawExtension"

    def _named(self, reference: str, *, package: str) -> str:
        if reference in _PLAIN:
            return _PLAIN[reference]
        other, _, name = reference.rpartition(".")
        if "properties" not in self._definitions[reference] and self._definitions[reference].get("type") != "object":
            return "RawExtension"
        if other == package:
            return name
        place = self._places.get(other)
        if place is None:
            raise ValueError(f"{reference}: no file has the version; add a kind of it with --kind")
        return f"{place.group}/{place.version}.{name}"


def _reference(schema: Mapping[str, Any]) -> str:
    """Return the name of the type that a schema refers to, or an empty text."""
    whole = schema.get("$ref") or next((each["$ref"] for each in schema.get("allOf", ()) if "$ref" in each), "")
    return str(whole).removeprefix(_REFERENCE)


def _package(name: str) -> str:
    return name.rpartition(".")[0]


def _served_kinds(definition: Mapping[str, Any]) -> list[Any]:
    return list(definition.get("x-kubernetes-group-version-kind", ()))


# Reading


def read_release(source: str, protobuf: pathlib.Path | None) -> Release:
    """Return what the documents of a server or a folder say; OSError if they cannot be read."""
    definitions: dict[str, Mapping[str, Any]] = {}
    described = set()
    for path, document in _documents(source):
        definitions |= document["components"]["schemas"]
        *_, group, version = ("core", *path.split("/")[1:])
        described.add(Place(group, version))
    return Release(definitions, frozenset(described), {} if protobuf is None else read_numbers(protobuf))


def _documents(source: str) -> Iterator[tuple[str, Any]]:
    """Yield the paths of documents, such as ``api/v1`` or ``apis/batch/v1``, and the documents."""
    if source.startswith(("http://", "https://")):
        root = source.rstrip("/")
        for path, each in _get(f"{root}/openapi/v3")["paths"].items():
            if path.startswith("api/") or path.count("/") == 2:
                yield path, _get(root + each["serverRelativeURL"])
    else:
        for file in sorted(pathlib.Path(source).glob("api*.json")):
            yield file.stem.replace("_", "/"), json.loads(file.read_text(encoding="utf-8"))


def _get(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return json.load(answer)


def read_numbers(folder: pathlib.Path) -> Numbers:
    """Return the numbers of all messages in files called generated.proto, by their names in OpenAPI documents."""
    numbers: dict[str, Mapping[str, int]] = {}
    for file in sorted(folder.rglob("generated.proto")):
        numbers |= _messages(file.read_text(encoding="utf-8"))
    return numbers


def _messages(text: str) -> Iterator[tuple[str, Mapping[str, int]]]:
    declared = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
    package = declared[1].replace("k8s.io.", "io.k8s.", 1) if declared else ""
    for message in re.finditer(r"^message (\w+) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        fields = re.findall(r"^ *(?:optional|repeated|map<).*? (\w+) = (\d+);", message[2], re.MULTILINE)
        yield f"{package}.{message[1]}", {name: int(number) for name, number in fields}


# Writing: one line for a field, so that differences read well


def write(versions: Mapping[str, Record]) -> str:
    """Return the text of a type file, with the stable versions first."""
    ordered = dict(sorted(versions.items(), key=lambda item: (item[0] != "*", item[0])))
    return "\n".join(["{", *_lines(ordered, level=1), "}"]) + "\n"


def _lines(members: Mapping[str, Any], *, level: int) -> Iterator[str]:
    indent = "  " * level
    for position, (key, value) in enumerate(members.items(), start=1):
        comma = "," if position < len(members) else ""
        name = json.dumps(key)
        if value and _is_spread(key, level=level):
            yield f"{indent}{name}: {{"
            yield from _lines(value, level=level + 1)
            yield f"{indent}}}{comma}"
        else:
            yield f"{indent}{name}: {json.dumps(value, ensure_ascii=False)}{comma}"


def _is_spread(key: str, *, level: int) -> bool:
    """Return True for versions, types and their fields, whose members have lines of their own."""
    return level in {1, 3} or (level, key) in {(2, "types"), (4, "fields")}


def main(arguments: Iterable[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="address of an API server, or folder of OpenAPI v3 documents")
    parser.add_argument("--protobuf", type=pathlib.Path, help="folder of generated.proto files")
    parser.add_argument("--kind", action="append", default=[], help="group/version.Kind to add; may be repeated")
    parser.add_argument("--files", type=pathlib.Path, default=FILES, help="folder of the type files")
    options = parser.parse_args(list(arguments))
    files = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(options.files.glob("*.json"))}
    generator = Generator(files, read_release(options.source, options.protobuf))
    for kind in options.kind:
        generator.add_kind(kind)
    for group, versions in generator.generate().items():
        (options.files / f"{group}.json").write_text(write(versions), encoding="utf-8")
    print("\n".join(generator.remarks))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
