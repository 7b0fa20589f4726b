"""Objects and JSON patches that expressions of mutations make."""

from typing import Any

import pytest

from drachma.cel import admission, patches, program
from drachma.cel.runtime import patches as values


def _evaluate(text: str, **inputs: Any) -> Any:
    compiler = admission.Compiler(has_params=False, composes=False)
    result = patches.JSON_PATCH_LIST if text.startswith("[") else patches.OBJECT
    return compiler.compile(text, result).evaluate_variables(inputs).value


def test_object() -> None:
    text = (
        "Object{metadata: Object.metadata{labels: {'a': object.b}}, items: [Object.items{n: 1u}], ?x: optional.none()}"
    )
    value = _evaluate(text, object={"b": "c"})
    assert patches.mismatches(value) == []
    assert patches.to_json(value) == {"metadata": {"labels": {"a": "c"}}, "items": [{"n": 1}]}


def test_json_patch() -> None:
    text = "[JSONPatch{op: 'add', path: '/labels/' + jsonpatch.escapeKey('a/b~c'), value: Object.spec{x: 1}}]"
    assert _evaluate(text) == [{"op": "add", "path": "/labels/a~1b~0c", "value": {"x": 1}}]


def test_types_are_named_after_their_place() -> None:
    (problem,) = patches.mismatches(_evaluate("Object{spec: Object.wrong{}}"))
    assert problem == (
        'unexpected type name "Object.wrong", expected "Object.spec", '
        "which matches field name path from root Object type"
    )


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("Object.spec{}", "must evaluate to Object but got Object.spec", id="a-part"),
        pytest.param("[JSONPatch{nope: 1}]", "undefined field 'nope'", id="no-such-field"),
        pytest.param("Thing{}", "undeclared reference to 'Thing'", id="no-such-type"),
    ],
)
def test_refused(text: str, want: str) -> None:
    with pytest.raises(program.CompilationError, match=want):
        _evaluate(text)


def test_only_mutations_make_objects() -> None:
    with pytest.raises(program.CompilationError, match="undeclared reference to 'Object'"):
        admission.Compiler(has_params=False, composes=False).compile("Object{} == Object{}")


def test_an_operation_is_a_text() -> None:
    value = _evaluate("[JSONPatch{op: object.op, path: '/a'}]", object={"op": 1})
    assert str(value) == "unexpected type int for JSONPatchType 'op' field"


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param({1: "a"}, "map key 1 is of type int, not string", id="key"),
        pytest.param(
            values.ObjectValue("Object", {"a": b"x"}), "a value of type bytes has no form in JSON", id="bytes"
        ),
    ],
)
def test_no_form_in_json(value: Any, want: str) -> None:
    with pytest.raises(patches.UnfitError, match=want):
        patches.to_json(value)
