"""The loader of type files: expressions, marks, layers, numbers, and types of other groups."""

from typing import Any

import pytest

from drachma.api import types
from drachma.api.types import model
from tests.unit import typefiles

_LOADER = typefiles.load(
    "example.com",
    {
        "Thing": {
            "name": {"type": "string", "required": True, "goType": "types.UID", "number": 1},
            "port": {"type": "int32", "default": 80, "pointer": True, "number": 5},
            "parts": {"type": "[]Part", "list": "map", "keys": ["key", "kind"], "patch": "merge", "required": True},
            "whole": {"type": "Part", "always": True, "patch": "retainKeys"},
            "tags": {"type": "[]string", "list": "set", "patch": "merge"},
            "rest": {"type": "[]Part", "patch": "merge", "mergeKey": "key"},
            "labels": "map[string]string",
            "fixed": {"type": "map[string]string", "map": "atomic"},
            "nested": "map[string][]string",
            "metadata": {"type": "meta/v1.ObjectMeta", "always": True},
        },
        "Part": {
            "key": {"type": "string", "required": True},
            "kind": {"type": "string", "default": "x"},
            "opaque": {"type": "RawExtension", "goParent": "Configuration"},
            "below": {"type": "[]Part", "list": "map", "keys": ["key"]},
        },
        "Pointers": {
            "value": {"type": "string", "required": True},
            "pointer": {"type": "string", "required": True, "pointer": True},
            "null": {"type": "string", "pointer": True, "always": True},
            "list": {"type": "[]string", "required": True, "always": True},
        },
        "Probe": {"delay": {"type": "int32", "number": 2}},
        "Handler": {"exec": {"type": "string", "number": 1}, "http": {"type": "string", "pointer": True, "number": 2}},
    },
    overlay={
        "*": {
            "types": {
                "Thing": {"description": "A thing.", "fields": {"name": {"description": "Its name."}}},
                "Part": {"description": "A part.", "fields": {"absent": {"description": "Of another version."}}},
            }
        },
        "v1": {
            "types": {
                "Part": {"description": "A part of v1.", "fields": {"own": {"type": "bool"}}},
                "Probe": {"embedded": {"Handler": 1}},
            }
        },
    },
)


def _get(name: str) -> types.Object:
    return _LOADER.get(f"example.com/v1.{name}")


def test_expressions() -> None:
    thing, part = _get("Thing"), _get("Part")
    fields = {name: field.type for name, field in thing.fields.items()}
    assert thing.definition == "com.example.v1.Thing"
    assert fields["name"] is model.STRING
    assert fields["parts"] == types.ListOf(part, ("key", "kind"))
    assert fields["tags"] == types.ListOf(model.STRING, ())
    assert fields["rest"] == types.ListOf(part)
    assert fields["labels"] == types.MapOf(model.STRING)
    assert fields["fixed"] == types.MapOf(model.STRING, atomic=True)
    assert fields["nested"] == types.MapOf(types.ListOf(model.STRING))


def test_marks() -> None:
    fields, part = _get("Thing").fields, _get("Part").fields
    assert (fields["name"].required, fields["name"].default, fields["port"].default) == (True, "", 80)
    assert (fields["name"].go_type, part["opaque"].go_parent) == ("types.UID", "Configuration")
    assert (fields["parts"].merges, fields["parts"].merge_key) == (True, "key")
    assert (fields["whole"].filled, fields["whole"].merges, fields["whole"].retains_keys) == (True, False, True)
    assert (fields["tags"].merges, fields["tags"].merge_key) == (True, "")
    assert (fields["rest"].merges, fields["rest"].merge_key) == (True, "key")


@pytest.mark.parametrize(
    ("field", "filled", "nulled"),
    [
        pytest.param("value", True, False, id="required-scalars-are-written-as-zero"),
        pytest.param("pointer", False, False, id="required-pointers-are-left-out"),
        pytest.param("null", True, True, id="pointers-without-omitempty-are-null"),
        pytest.param("list", True, True, id="lists-without-omitempty-are-null"),
    ],
)
def test_empty_values(field: str, filled: bool, nulled: bool) -> None:
    facts = _get("Pointers").fields[field]
    assert (facts.filled, facts.nulled) == (filled, nulled)


def test_protobuf_numbers() -> None:
    assert _get("Thing").message == {1: model.Numbered("name"), 5: model.Numbered("port", is_pointer=True)}
    handler = {1: model.Numbered("exec"), 2: model.Numbered("http", is_pointer=True)}
    assert _get("Probe").message == {2: model.Numbered("delay"), 1: model.Numbered("Handler", embedded=handler)}


def test_overlay() -> None:
    thing, part = _get("Thing"), _get("Part")
    assert (thing.description, thing.fields["name"].description) == ("A thing.", "Its name.")
    assert part.description == "A part of v1."
    assert list(part.fields) == ["below", "key", "kind", "opaque", "own"]


def test_a_type_is_made_once() -> None:
    assert _get("Part").fields["below"].type == types.ListOf(_get("Part"), ("key",))
    assert _get("Thing").fields["metadata"].type is types.get("meta/v1.ObjectMeta")
    assert repr(_get("Part")) == "Object(com.example.v1.Part)"


@pytest.mark.parametrize("reference", ["nope/v1.Thing", "example.com/v2.Thing", "example.com/v1.Nope"])
def test_unknown_types(reference: str) -> None:
    with pytest.raises(KeyError):
        _LOADER.get(reference)


def test_unknown_types_of_fields() -> None:
    own: Any = {"Whole": {"part": "Nope"}}
    with pytest.raises(KeyError, match="Nope"):
        typefiles.load("example.com", own).get("example.com/v1.Whole")
