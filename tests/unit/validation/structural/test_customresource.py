"""Objects of custom resources: pruning, nulls, defaults, lists, embedded resources, and when rules are asked."""

from typing import Any

import pytest

from drachma import errors
from drachma.validation.structural import customresource, schema


def _structure(**spec: Any) -> customresource.Structure:
    return customresource.Structure(
        schema.parse({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}})
    )


def _object(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


def test_unknown_fields_are_dropped_and_named_in_order() -> None:
    structure = _structure(
        a={"type": "string"},
        free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        list={"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
        map={"type": "object", "additionalProperties": {"type": "integer"}},
    )
    given = _object(b=1, a="x", free={"any": {"deep": 1}}, list=[{"z": 1, "k": "v"}], map={"x": 1})
    read = structure.read(given | {"extra": 1})
    assert read.document == _object(a="x", free={"any": {"deep": 1}}, list=[{"k": "v"}], map={"x": 1})
    assert read.dropped == ["extra", "spec.b", "spec.list[0].z"]
    assert given["spec"]["b"] == 1, "what is given is not changed"


@pytest.mark.parametrize(
    ("written", "value", "want"),
    [
        pytest.param({"type": "string", "default": "d"}, None, {"x": "d"}, id="null-becomes-the-default"),
        pytest.param({"type": "string", "default": "d", "nullable": True}, None, {"x": None}, id="null-stays"),
        pytest.param({"type": "string"}, None, {}, id="null-goes"),
        pytest.param(
            {"type": "object", "default": {}, "properties": {"y": {"type": "integer", "default": 3}}},
            None,
            {"x": {"y": 3}},
            id="defaults-inside-of-defaults",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string", "default": "kk"}}}},
            [{}, {"k": "l"}],
            {"x": [{"k": "kk"}, {"k": "l"}]},
            id="defaults-of-items",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "object", "properties": {"z": {"default": True}}}},
            {"a": {}},
            {"x": {"a": {"z": True}}},
            id="defaults-of-values",
        ),
    ],
)
def test_defaults(written: dict[str, Any], value: Any, want: dict[str, Any]) -> None:
    assert _structure(x=written).read(_object(x=value)).document["spec"] == want


def test_a_default_is_not_shared_with_those_who_change_it() -> None:
    structure = _structure(x={"type": "object", "default": {}, "properties": {"y": {"type": "integer", "default": 3}}})
    first = structure.read(_object()).document
    first["spec"]["x"]["y"] = 7
    assert structure.read(_object()).document["spec"] == {"x": {"y": 3}}


_SET = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
_KEYED = {
    "type": "array",
    "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string"}}, "required": ["k"]},
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
}


@pytest.mark.parametrize(
    ("written", "value", "want"),
    [
        pytest.param(_SET, ["a", "a", "a"], ['spec.x[1]: Duplicate value: "a"'], id="set"),
        pytest.param(_KEYED, [{"k": "1"}, {"k": "1"}], ['spec.x[1]: Duplicate value: {"k":"1"}'], id="map"),
        pytest.param(_KEYED, [{}], ["spec.x[0].k: Required value"], id="missing-key"),
    ],
)
def test_lists(written: dict[str, Any], value: Any, want: list[str]) -> None:
    structure = _structure(x=written)
    assert [str(error) for error in structure.check(_object(x=value))] == want


def test_a_list_that_was_wrong_before_may_stay_so() -> None:
    structure = _structure(x=_SET, y={"type": "string"})
    assert structure.check_update(_object(x=["a", "a"], y="new"), _object(x=["a", "a"]), []) == []


def test_embedded_resources() -> None:
    structure = _structure(
        emb={"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    )
    given = _object(emb={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "odd": 1}, "spec": {"x": 1}})
    read = structure.read(given).document
    assert read["spec"]["emb"] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"x": 1}}
    missing = structure.check(_object(emb={"spec": {}}))
    assert [str(error) for error in missing] == [
        "spec.emb.apiVersion: Required value",
        "spec.emb.kind: Required value",
    ]
    with pytest.raises(errors.InvalidValueError, match=r"spec\.emb\.kind: Invalid value: 5: must be a string"):
        structure.read(_object(emb={"kind": 5}))


def test_rules_are_not_asked_about_objects_of_the_wrong_form() -> None:
    structure = _structure(
        a={"type": "string", "maxLength": 1},
        b={"type": "string", "x-kubernetes-validations": [{"rule": "self == 'good'"}]},
    )
    found = [str(error) for error in structure.check(_object(a="long", b="bad"))]
    assert found == [
        "spec.a: Too long: may not be more than 1 byte",
        (
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
            "correct the existing errors to complete validation"
        ),
    ]


def test_schemas_are_not_nested_for_ever() -> None:
    nested: dict[str, Any] = {"type": "object"}
    for _ in range(100):
        nested = {"type": "object", "properties": {"x": nested}}
    with pytest.raises(errors.InvalidValueError, match="more than 64 levels deep"):
        schema.parse(nested)
