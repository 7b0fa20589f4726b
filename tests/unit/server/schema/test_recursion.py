"""Types that refer to themselves, in everything that walks through documents along a type."""

from typing import Any

import msgspec
import pytest

from drachma.api import types
from drachma.server.ownership import comparison, fieldset, merging
from drachma.server.patch import strategic, strategicerrors
from drachma.server.schema import decodeerrors, emptyfields, normalform, typecheck, unknownfields
from drachma.server.surface.openapi import schemas
from tests.unit import typefiles

_GROUP = "example.com"
_LOADER = typefiles.load(
    _GROUP,
    {
        "Tree": {
            "apiVersion": "string",
            "kind": "string",
            "metadata": {"type": "meta/v1.ObjectMeta", "always": True},
            "spec": {"type": "Branch", "always": True},
        },
        "Branch": {
            "amount": "Quantity",
            "branches": {"type": "[]Branch", "list": "map", "keys": ["name"], "patch": "merge"},
            "by": "map[string]Branch",
            "leaf": {"type": "Leaf", "always": True},
            "name": {"type": "string", "required": True},
            "next": "Branch",
            "size": "int32",
        },
        "Leaf": {"branch": "Branch", "color": {"type": "string", "required": True}},
        "Plain": {"other": "Plain", "size": "int32"},
    },
)
TREE, BRANCH, PLAIN = (_LOADER.get(f"{_GROUP}/v1.{name}") for name in ("Tree", "Branch", "Plain"))


def _nested(leaf: dict[str, Any], depth: int = 5) -> dict[str, Any]:
    for level in range(depth):
        leaf = {"name": f"n{level}", "branches": [leaf]}
    return leaf


def test_empty() -> None:
    assert types.empty(TREE) == {"metadata": {}, "spec": {"leaf": {"color": ""}, "name": ""}}


def test_normal_form() -> None:
    settled = normalform.normalize(
        _nested({"name": "x", "size": 0, "amount": 1000, "next": {"amount": "1000m"}}), BRANCH
    )
    assert settled == _nested({"name": "x", "amount": "1k", "next": {"amount": "1"}})


def test_empty_fields() -> None:
    document: dict[str, Any] = {"branches": [{"next": {"by": {"a": {}}}}]}
    emptyfields.fill(document, BRANCH)
    bare = {"leaf": {"color": ""}, "name": ""}
    assert document == {"branches": [{"next": {"by": {"a": bare}, **bare}, **bare}], **bare}


def test_empty_containers_of_encoded_structs() -> None:
    document: dict[str, Any] = {"branches": [{"by": {"a": {}}}]}
    emptyfields.fill_containers(document, BRANCH)
    assert document == {"branches": [{"by": {"a": {"leaf": {}}}, "leaf": {}}], "leaf": {}}


def test_a_type_in_which_nothing_is_to_be_filled() -> None:
    document: dict[str, Any] = {"other": {"other": {}}}
    emptyfields.fill(document, PLAIN)
    assert document == {"other": {"other": {}}}


@pytest.mark.parametrize(
    ("leaf", "want"),
    [
        pytest.param({"size": 1}, "", id="good"),
        pytest.param(
            {"size": "1"},
            "json: cannot unmarshal string into Go struct field "
            "Branch.branches.branches.branches.branches.branches.size of type int32",
            id="wrong-type",
        ),
    ],
)
def test_types_of_values(leaf: dict[str, Any], want: str) -> None:
    document = _nested(leaf)
    assert typecheck.has_types(document, BRANCH) == (want == "")
    assert decodeerrors.explain(document, BRANCH) == decodeerrors.explain_slowly(document, BRANCH) == want
    assert bool(strategicerrors.explain(document, BRANCH)) == bool(want)


def test_unknown_fields() -> None:
    assert unknownfields.unknown_fields({"by": {"a": {"leaf": {"branch": {"nope": 1}}}}}, BRANCH) == [
        'unknown field "by.a.leaf.branch.nope"'
    ]
    assert unknownfields.unknown_fields(_nested({"name": "x"}), BRANCH) == []


def test_comparison() -> None:
    old, new = _nested({"name": "x", "size": 1}, depth=2), _nested({"name": "x", "size": 2, "by": {"a": {}}}, depth=2)
    compared = comparison.compare(old, new, schema=BRANCH)
    place = ("f:branches", 'k:{"name":"n0"}', "f:branches", 'k:{"name":"x"}')
    assert list(fieldset.paths(compared.modified)) == [(*place, "f:size")]
    assert (*place, "f:by", "f:a") in set(fieldset.paths(compared.added))
    assert list(fieldset.paths(compared.removed)) == []


def test_merging() -> None:
    merged = merging.merge(
        _nested({"name": "x", "size": 1}, depth=2), _nested({"name": "x", "by": {"a": {}}}, depth=2), schema=BRANCH
    )
    assert merged == _nested({"name": "x", "size": 1, "by": {"a": {}}}, depth=2)


def test_strategic_merge_patch() -> None:
    patched = strategic.apply(
        _nested({"name": "x", "size": 1}, depth=2), _nested({"name": "y"}, depth=2), schema=BRANCH
    )
    assert [each["name"] for each in patched["branches"][0]["branches"]] == ["y", "x"]


def test_openapi() -> None:
    definitions = schemas.Definitions(schemas.V3)
    definitions.add_kind(TREE, group="example.com", version="v1", kind="Tree")
    branch = definitions.made["com.example.v1.Branch"]["properties"]
    assert branch["next"]["allOf"] == [{"$ref": "#/components/schemas/com.example.v1.Branch"}]
    assert msgspec.json.encode(definitions.made)


def test_two_types_of_one_name_are_refused() -> None:
    definitions = schemas.Definitions(schemas.V3)
    definitions.add_kind(TREE, group="example.com", version="v1", kind="Tree")
    other = typefiles.load(_GROUP, {"Tree": {"name": "string"}}).get(f"{_GROUP}/v1.Tree")
    with pytest.raises(ValueError, match="two types of one name"):
        definitions.add_kind(other, group="example.com", version="v1", kind="Tree")
