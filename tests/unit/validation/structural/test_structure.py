"""Which schemas are structural, and which may be used, in upstream's words."""

from typing import Any

import pytest

from drachma.validation.path import Path
from drachma.validation.structural import defaultvalues, fieldpaths, schema, schemarules, structure

AT = Path("s")


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("written", "want"),
    [
        pytest.param({}, ["s.type: Required value: must not be empty at the root"], id="no-type"),
        pytest.param(
            {"type": "array", "items": {"type": "string"}},
            ['s.type: Invalid value: "array": must be object at the root'],
            id="root",
        ),
        pytest.param(
            _object(a={"type": "array"}), ["s.properties[a].items: Required value: must be specified"], id="items"
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "string"}},
            ["s.additionalProperties: Forbidden: must not be used at the root"],
            id="map-at-the-root",
        ),
        pytest.param(
            _object(a={"type": "string"}) | {"anyOf": [{"type": "object"}]},
            ["s.anyOf[0].type: Forbidden: must be empty to be structural"],
            id="type-in-a-condition",
        ),
        pytest.param(
            _object() | {"allOf": [{"properties": {"a": {"minimum": 1}}}]},
            ["s.properties[a]: Required value: because it is defined in s.allOf[0].properties[a]"],
            id="field-only-in-a-condition",
        ),
        pytest.param(
            _object(metadata=_object(labels={"type": "object"})),
            [
                (
                    "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, "
                    "but metadata is implicitly specified"
                )
            ],
            id="metadata",
        ),
        pytest.param(_object(metadata=_object(name={"type": "string", "maxLength": 5})), [], id="names-in-metadata"),
        pytest.param(
            _object(a={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            [],
            id="int-or-string",
        ),
        pytest.param(
            _object(a={"type": "object", "x-kubernetes-embedded-resource": True}),
            [
                (
                    "s.properties[a].properties: Required value: must not be empty if x-kubernetes-embedded-resource "
                    "is true without x-kubernetes-preserve-unknown-fields"
                )
            ],
            id="embedded-resource-of-nothing",
        ),
    ],
)
def test_structure(written: dict[str, Any], want: list[str]) -> None:
    assert [str(error) for error in structure.check(schema.parse(written), AT)] == want


@pytest.mark.parametrize(
    ("written", "want"),
    [
        pytest.param(
            {"type": "odd"},
            's.properties[a].type: Unsupported value: "odd": supported values: "array", '
            '"boolean", "integer", "number", "object", "string"',
            id="type",
        ),
        pytest.param(
            {"type": "string", "$ref": "x"}, "s.properties[a].$ref: Forbidden: $ref is not supported", id="ref"
        ),
        pytest.param(
            {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"},
            "s.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty "
            "if x-kubernetes-list-type is map",
            id="map-without-keys",
        ),
        pytest.param(
            {
                "type": "array",
                "items": _object(k={"type": "string"}),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
            },
            "s.properties[a].items.properties[k].default: Required value: this property is in "
            "x-kubernetes-list-map-keys, so it must have a default or be a required property",
            id="key-that-may-be-absent",
        ),
        pytest.param(
            {"type": "string", "x-kubernetes-validations": [{"rule": " "}]},
            "s.properties[a].x-kubernetes-validations[0].rule: Required value: rule is not specified",
            id="empty-rule",
        ),
        pytest.param(
            {"type": "string", "x-kubernetes-validations": [{"rule": "true", "reason": "Odd"}]},
            's.properties[a].x-kubernetes-validations[0].reason: Unsupported value: "Odd": supported values: '
            '"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
            id="reason",
        ),
        pytest.param(
            {"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "true", "optionalOldSelf": True}]},
            "s.properties[a].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set "
            "if oldSelf is not used in rule",
            id="optional-old-self-without-old-self",
        ),
        pytest.param(
            {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}},
            "s.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
            id="fields-and-map",
        ),
    ],
)
def test_schema_rules(written: dict[str, Any], want: str) -> None:
    circumstances = schemarules.Circumstances(costs=schemarules.Costs(), is_root=True)
    found = [str(error) for error in schemarules.check(schema.parse(_object(a=written)), AT, circumstances)]
    assert found == [want]


@pytest.mark.parametrize(
    ("cost", "want"),
    [
        pytest.param(12_000_000, "1.200000x", id="a-little"),
        pytest.param(35_000_000, "3.5x", id="some"),
        pytest.param(10**10, "more than 100x", id="much"),
    ],
)
def test_costs_are_compared_as_upstream_does(cost: int, want: str) -> None:
    assert schemarules._over_budget("cost", cost, 10_000_000) == (
        f"cost exceeds budget by factor of {want} (try simplifying the rule, or adding maxItems, maxProperties, and "
        "maxLength where arrays, maps, and strings are declared)"
    )


def test_defaults_must_be_good_values() -> None:
    written = _object(
        a=_object(b={"type": "integer"}) | {"default": {"b": "x", "c": 1}},
        d={"type": "string", "default": "bad", "x-kubernetes-validations": [{"rule": "self != 'bad'"}]},
    )
    found = [str(error) for error in defaultvalues.check(schema.parse(written), AT)]
    assert found == [
        's.properties[a].default: Invalid value: {"b":"x","c":1}: must not have unknown fields',
        's.properties[a].default.b: Invalid value: "string": b in body must be of type integer: "string"',
        "s.properties[d].default: Invalid value: \"bad\": failed rule: self != 'bad'",
    ]


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param(".spec.a", "spec.a", id="fields"),
        pytest.param(".spec['a']", "spec.a", id="quoted-field"),
        pytest.param(".map['x.y']", "map[x.y]", id="key"),
        pytest.param(".spec.nope", "does not refer to a valid field", id="no-such-field"),
        pytest.param("spec", "expected [ or . but got: spec", id="no-dot"),
        pytest.param(".spec[0]", "expected single quoted string but got 0", id="no-quotes"),
        pytest.param(".", "unexpected end of JSON path", id="end"),
    ],
)
def test_field_paths(path: str, want: str) -> None:
    parsed = schema.parse(
        _object(spec=_object(a={"type": "string"}), map={"type": "object", "additionalProperties": {"type": "string"}})
    )
    place = fieldpaths.find(path, parsed)
    assert (place if isinstance(place, str) else str(place.path)) == want
