"""Sets of fields: elements, algebra, order and the forms they are read in and shown in."""

from typing import Any

import pytest

from drachma import errors
from drachma.server.ownership import fieldset

PARENT: fieldset.FieldSet = {"f:a": {}}
CHILD: fieldset.FieldSet = {"f:a": {"f:b": {}}}
BOTH: fieldset.FieldSet = {"f:a": {".": {}, "f:b": {}}}


@pytest.mark.parametrize(
    ("left", "right", "union", "intersection", "difference", "recursive"),
    [
        pytest.param(PARENT, CHILD, BOTH, {}, PARENT, PARENT, id="parent-and-child"),
        pytest.param(CHILD, PARENT, BOTH, {}, CHILD, {}, id="child-and-parent"),
        pytest.param(BOTH, CHILD, BOTH, CHILD, PARENT, PARENT, id="both-and-child"),
        pytest.param(BOTH, PARENT, BOTH, PARENT, CHILD, {}, id="both-and-parent"),
        pytest.param(BOTH, BOTH, BOTH, BOTH, {}, {}, id="itself"),
        pytest.param(BOTH, {}, BOTH, {}, BOTH, BOTH, id="nothing"),
    ],
)
def test_algebra(left: Any, right: Any, union: Any, intersection: Any, difference: Any, recursive: Any) -> None:
    assert fieldset.union(left, right) == union
    assert fieldset.intersection(left, right) == intersection
    assert fieldset.difference(left, right) == difference
    assert fieldset.recursive_difference(left, right) == recursive


def test_elements_are_written_as_go_writes_them() -> None:
    assert fieldset.item({"protocol": "TCP", "containerPort": 80}) == 'k:{"containerPort":80,"protocol":"TCP"}'
    assert fieldset.value("a<b") == r'v:"a\u003cb"'
    assert fieldset.value(1.0) == "v:1"


def test_order_is_fields_keys_values_indices_and_numbers_count_as_numbers() -> None:
    elements = ["i:1", 'v:"b"', "v:10", "v:9", 'k:{"port":80}', 'k:{"port":8}', "f:b", "f:a"]
    want = ["f:a", "f:b", 'k:{"port":8}', 'k:{"port":80}', "v:9", "v:10", 'v:"b"', "i:1"]
    assert list(fieldset.encode({element: {} for element in elements})) == want


def test_members_come_before_what_is_below_them() -> None:
    fields: fieldset.FieldSet = {"f:b": {}, "f:a": {".": {}, "f:c": {}}, "f:d": {"f:e": {}}}
    shown = [fieldset.text(path) for path in fieldset.paths(fields)]
    assert shown == [".a", ".b", ".a.c", ".d.e"]


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param(("f:spec", 'k:{"name":"a","port":1}', "f:x"), '.spec[name="a",port=1].x', id="keys"),
        pytest.param(("f:finalizers", 'v:"x/y"'), '.finalizers[="x/y"]', id="value"),
        pytest.param(("f:a", "i:0"), ".a[0]", id="index"),
    ],
)
def test_text(path: tuple[str, ...], want: str) -> None:
    assert fieldset.text(path) == want


def test_decode_makes_elements_canonical_and_drops_unknown_ones() -> None:
    assert fieldset.decode({'k:{"b": 1, "a": "x"}': {".": {}}, "z:later": {}}) == {'k:{"a":"x","b":1}': {".": {}}}


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param([], "must be an object", id="list"),
        pytest.param({"f": {}}, "2 characters long", id="short"),
        pytest.param({"fx": {}}, "missing colon: fx", id="no-colon"),
        pytest.param({"k:x": {}}, "not followed by JSON", id="no-json"),
        pytest.param({"k:1": {}}, "no key fields", id="no-keys"),
        pytest.param({"i:x": {}}, "not followed by JSON", id="no-index"),
    ],
)
def test_decode_refuses(document: Any, want: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=want):
        fieldset.decode(document)
