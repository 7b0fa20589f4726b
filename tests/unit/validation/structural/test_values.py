"""Values against schemas: upstream's messages, and what updates leave unsaid."""

from typing import Any

import pytest

from drachma.validation.structural import schema, values


def _check(written: dict[str, Any], value: Any, **options: Any) -> list[str]:
    return [str(error) for error in values.check(schema.parse(written), value, **options)]


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


_ONE = _object(a={"type": "integer"}, b={"type": "integer"}) | {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}


@pytest.mark.parametrize(
    ("written", "value", "want"),
    [
        pytest.param(
            {"type": "string", "maxLength": 2}, "abc", "Too long: may not be more than 2 bytes", id="too-long"
        ),
        pytest.param(
            {"type": "string", "minLength": 2, "pattern": "^b"},
            "a",
            'Invalid value: "a": x in body should be at least 2 chars long',
            id="first-problem-of-a-text-only",
        ),
        pytest.param(
            {"type": "string", "pattern": "^b"}, "a", "Invalid value: \"a\": x in body should match '^b'", id="pattern"
        ),
        pytest.param(
            {"type": "string"}, 5, 'Invalid value: "integer": x in body must be of type string: "integer"', id="type"
        ),
        pytest.param(
            {"type": "string"}, None, 'Invalid value: "null": x in body must be of type string: "null"', id="null"
        ),
        pytest.param(
            {"x-kubernetes-int-or-string": True},
            1.5,
            'Invalid value: "number": x in body must be of type integer,string: "number"',
            id="int-or-string",
        ),
        pytest.param(
            {"type": "string", "format": "date-time"},
            "yesterday",
            'Invalid value: "yesterday": x in body must be of type date-time: "yesterday"',
            id="format",
        ),
        pytest.param(
            {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
            0,
            "Invalid value: 0: x in body should be greater than 0",
            id="exclusive-minimum",
        ),
        pytest.param(
            {"type": "number", "maximum": 1.5},
            2.25,
            "Invalid value: 2.25: x in body should be less than or equal to 1.5",
            id="maximum-of-floats",
        ),
        pytest.param(
            {"type": "number"},
            10**400,
            'Invalid value: "+Inf": x in body must be a number of 64 bits',
            id="beyond-floats",
        ),
        pytest.param(
            {"type": "string", "enum": ["a", "b"]},
            "c",
            'Unsupported value: "c": supported values: "a", "b"',
            id="enum",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            ["a", "b"],
            "Too many: 2: must have at most 1 item",
            id="too-many",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
            {},
            "Invalid value: 0: x in body should have at least 1 properties",
            id="too-few-properties",
        ),
    ],
)
def test_message(written: dict[str, Any], value: Any, want: str) -> None:
    assert _check(_object(x=written), {"x": value}) == [f"x: {want}"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        pytest.param({"type": "integer"}, 2.0, id="whole-float-as-integer"),
        pytest.param({"type": "number"}, 2, id="integer-as-number"),
        pytest.param({"type": "string", "nullable": True}, None, id="nullable"),
        pytest.param({"type": "string", "format": "unheard-of"}, "anything", id="unknown-format"),
        pytest.param({"type": "integer", "enum": [1, 2]}, 2.0, id="enum-of-numbers"),
        pytest.param({"x-kubernetes-preserve-unknown-fields": True}, {"a": [1]}, id="anything"),
        pytest.param({"type": "string", "maxLength": 2}, "日本", id="length-counts-characters"),
        pytest.param({"type": "number", "multipleOf": 0.1}, 0.3, id="multiple-of-a-fraction"),
    ],
)
def test_good(written: dict[str, Any], value: Any) -> None:
    assert _check(_object(x=written), {"x": value}) == []


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param(
            {},
            [
                '<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found none valid',
                "x.a: Required value",
            ],
            id="none",
        ),
        pytest.param(
            {"a": 1, "b": 1},
            ['<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
            id="both",
        ),
        pytest.param({"b": 1}, [], id="one"),
    ],
)
def test_one_of(value: Any, want: list[str]) -> None:
    assert _check(_object(x=_ONE), {"x": value}) == want


def test_the_closest_alternative_is_explained() -> None:
    texts = {"type": "object", "properties": {"n": {"type": "integer"}, "m": {"type": "string"}}}
    choice = {**texts, "anyOf": [{"required": ["m"]}, {"properties": {"n": {"minimum": 5}}, "required": ["n"]}]}
    found = _check(_object(x=choice), {"x": {"n": 3}})
    assert found == [
        '<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)',
        "x.n: Invalid value: 3: x.n in body should be greater than or equal to 5",
    ]


def test_what_has_not_changed_is_not_reported() -> None:
    written = _object(a={"type": "string", "maxLength": 1}, b={"type": "string"})
    assert _check(written, {"a": "long", "b": "new"}, old={"a": "long", "b": "old"}) == []
    changed = _check(written, {"a": "other"}, old={"a": "long"})
    assert changed == ["a: Too long: may not be more than 1 byte"]


def test_items_correspond_by_their_keys() -> None:
    item = _object(k={"type": "string"}, v={"type": "string", "maxLength": 1})
    keyed = {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }
    old = {"l": [{"k": "1", "v": "long"}]}
    new = {"l": [{"k": "2", "v": "worse"}, {"k": "1", "v": "long"}]}
    assert _check(_object(l=keyed), new, old=old) == ["l[0].v: Too long: may not be more than 1 byte"]


def test_a_status_is_named_without_its_prefix() -> None:
    found = _check(_object(phase={"type": "string"}), {"phase": 5}, prefix="status")
    assert found == ['status.phase: Invalid value: "integer": phase in body must be of type string: "integer"']
