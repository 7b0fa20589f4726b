"""Comparing documents along a schema, and merging and removing along the same lines."""

from typing import Any

import pytest

from drachma.server.ownership import applyerrors, comparison, merging
from tests.unit.server import served

POD = served.schema("v1", "Pod")
CLAIM = served.schema("resource.k8s.io/v1", "ResourceClaim")


def _pod(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(containers)}}


def _below(fields: Any) -> Any:
    return {"f:spec": {"f:containers": fields}}


@pytest.mark.parametrize(
    ("old", "new", "removed", "modified", "added"),
    [
        pytest.param(_pod({"name": "a"}), _pod({"name": "a"}), {}, {}, {}, id="same"),
        pytest.param(
            _pod({"name": "a", "image": "1"}),
            _pod({"name": "a", "image": "2"}),
            {},
            _below({'k:{"name":"a"}': {"f:image": {}}}),
            {},
            id="field-of-an-item",
        ),
        pytest.param(
            _pod({"name": "a"}, {"name": "b"}),
            _pod({"name": "b"}, {"name": "a"}),
            {},
            {},
            {},
            id="order-does-not-count",
        ),
        pytest.param(
            _pod({"name": "a"}),
            _pod({"name": "b"}),
            _below({'k:{"name":"a"}': {".": {}, "f:name": {}}}),
            {},
            _below({'k:{"name":"b"}': {".": {}, "f:name": {}}}),
            id="another-item",
        ),
        pytest.param(
            {}, {"metadata": {"labels": {}}}, {}, {}, {"f:metadata": {".": {}, "f:labels": {}}}, id="empty-map"
        ),
        pytest.param(
            {"spec": {"tolerations": [{"key": "a"}]}},
            {"spec": {"tolerations": [{"key": "a"}, {"key": "b"}]}},
            {},
            {"f:spec": {"f:tolerations": {}}},
            {},
            id="atomic-list",
        ),
        pytest.param(
            {"spec": {"nodeSelector": {"a": "1"}}},
            {"spec": {"nodeSelector": {"a": "1", "b": "2"}}},
            {},
            {"f:spec": {"f:nodeSelector": {}}},
            {},
            id="atomic-map",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"finalizers": ["b", "c"]}},
            {"f:metadata": {"f:finalizers": {'v:"a"': {}}}},
            {},
            {"f:metadata": {"f:finalizers": {'v:"c"': {}}}},
            id="set",
        ),
        pytest.param(
            _pod({"name": "a", "ports": [{"containerPort": 1}]}),
            _pod({"name": "a", "ports": [{"containerPort": 1, "protocol": "TCP"}]}),
            {},
            {},
            _below({'k:{"name":"a"}': {"f:ports": {'k:{"containerPort":1,"protocol":"TCP"}': {"f:protocol": {}}}}}),
            id="default-of-a-key",
        ),
        pytest.param(
            _pod({"name": "a", "image": "1"}),
            _pod({"name": "a", "image": "1"}, {"name": "a", "image": "2"}),
            _below({'k:{"name":"a"}': {".": {}, "f:image": {}, "f:name": {}}}),
            {},
            _below({'k:{"name":"a"}': {}}),
            id="item-becomes-ambiguous",
        ),
    ],
)
def test_compare(old: Any, new: Any, removed: Any, modified: Any, added: Any) -> None:
    assert comparison.compare(old, new, schema=POD) == (removed, modified, added)


def test_true_is_not_one_in_free_json() -> None:
    def claim(value: Any) -> dict[str, Any]:
        return {"status": {"devices": [{"driver": "d", "pool": "p", "device": "x", "data": {"v": value}}]}}

    assert comparison.compare(claim(1), claim(1.0), schema=CLAIM) == ({}, {}, {})
    assert comparison.compare(claim(1), claim(True), schema=CLAIM).modified


def test_fields_of_a_document() -> None:
    document = {
        "metadata": {"labels": {"a": "1"}, "finalizers": [], "annotations": {}},
        "spec": {"containers": [{"name": "a", "command": ["x"]}], "nodeName": None},
    }
    assert comparison.fields_of(document, schema=POD) == {
        "f:metadata": {"f:labels": {"f:a": {}}, "f:annotations": {}},
        "f:spec": {
            "f:containers": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:command": {}}},
            "f:nodeName": {},
        },
    }


@pytest.mark.parametrize(
    ("live", "applied", "want"),
    [
        pytest.param("abc", "", "abc", id="nothing-applied"),
        pytest.param("abc", "ca", "bca", id="applied-order-wins"),
        pytest.param("abc", "xb", "axbc", id="new-item-before-its-follower"),
        pytest.param("abc", "bx", "abcx", id="new-item-after-what-is-left"),
        pytest.param("", "ba", "ba", id="nothing-before"),
        pytest.param("abcd", "dxa", "bcdxa", id="reversed-around-a-new-one"),
    ],
)
def test_merged_lists_are_in_the_order_of_the_configuration(live: str, applied: str, want: str) -> None:
    merged = merging.merge(
        _pod(*({"name": name} for name in live)), _pod(*({"name": name} for name in applied)), schema=POD
    )
    assert "".join(each["name"] for each in merged["spec"]["containers"]) == want


def test_without_leaves_null_where_nothing_is_left() -> None:
    document = {"metadata": {"labels": {"a": "1"}}, **_pod({"name": "a", "image": "1"})}
    fields = {"f:metadata": {"f:labels": {"f:a": {}}}, **_below({'k:{"name":"a"}': {"f:image": {}}})}
    assert merging.without(document, fields, schema=POD) == {"metadata": {"labels": None}, **_pod({"name": "a"})}


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param({"spec": {"foo": 1}}, [".spec.foo: field not declared in schema"], id="unknown-field"),
        pytest.param(
            {"metadata": {"labels": {"a": 1}}},
            [".metadata.labels.a: expected string, got &value.valueUnstructured{Value:1}"],
            id="number-for-a-string",
        ),
        pytest.param({"metadata": {"labels": "x"}}, [".metadata.labels: expected map, got &{x}"], id="text-for-a-map"),
        pytest.param(
            {"spec": {"hostNetwork": "x"}}, [".spec.hostNetwork: expected boolean, got &{x}"], id="text-for-a-boolean"
        ),
        pytest.param(
            _pod({"image": "a"}, {"image": "b"}),
            ['.spec.containers: duplicate entries for key [name=""]'],
            id="two-items-without-name",
        ),
        pytest.param(
            _pod({"name": "b", "ports": [{"containerPort": "x"}]}),
            [
                (
                    '.spec.containers[name="b"].ports[containerPort="x",protocol="TCP"].containerPort: '
                    "expected numeric (int or float), got string"
                )
            ],
            id="path-through-items",
        ),
    ],
)
def test_conformity(document: dict[str, Any], want: list[str]) -> None:
    assert applyerrors.problems(document, schema=POD) == want
