"""JSON patch: the RFC's operations and the liberties that upstream's library takes."""

from typing import Any

import pytest

from drachma.server.patch import jsonpatch

DOCUMENT = {"a": {"b": [1, 2, 3]}, "x/y": {"~": 1}, "n": None}


@pytest.mark.parametrize(
    ("operations", "want"),
    [
        pytest.param([{"op": "add", "path": "/a/c", "value": 1}], {"a": {"b": [1, 2, 3], "c": 1}}, id="add-a-field"),
        pytest.param([{"op": "add", "path": "/a/b/1", "value": 9}], {"a": {"b": [1, 9, 2, 3]}}, id="add-an-item"),
        pytest.param([{"op": "add", "path": "/a/b/-", "value": 9}], {"a": {"b": [1, 2, 3, 9]}}, id="append"),
        pytest.param([{"op": "add", "path": "/a/b/-1", "value": 9}], {"a": {"b": [1, 2, 3, 9]}}, id="add-at-the-end"),
        pytest.param([{"op": "add", "path": "/a/c"}], {"a": {"b": [1, 2, 3], "c": None}}, id="add-without-value"),
        pytest.param([{"op": "remove", "path": "/a/b/-1"}], {"a": {"b": [1, 2]}}, id="remove-from-the-end"),
        pytest.param([{"op": "replace", "path": "/a/b", "value": 1}], {"a": {"b": 1}}, id="replace"),
        pytest.param([{"op": "replace", "path": "/z", "value": 1}], {"z": 1}, id="replace-what-is-not-there"),
        pytest.param([{"op": "move", "from": "/a/b/0", "path": "/z"}], {"a": {"b": [2, 3]}, "z": 1}, id="move"),
        pytest.param([{"op": "copy", "from": "/a/b", "path": "/z"}], {"z": [1, 2, 3]}, id="copy"),
        pytest.param([{"op": "test", "path": "/x~1y/~0", "value": 1}], {}, id="escaped-pointer"),
        pytest.param([{"op": "test", "path": "/missing", "value": None}], {}, id="what-is-missing-tests-as-null"),
    ],
)
def test_operations(operations: list[Any], want: dict[str, Any]) -> None:
    assert jsonpatch.apply(DOCUMENT, operations) == {**DOCUMENT, **want}


@pytest.mark.parametrize(
    ("operation", "want"),
    [
        pytest.param({"op": "test", "path": "/a/b/0", "value": True}, "test failed", id="true-is-not-one"),
        pytest.param({"op": "remove", "path": "/z"}, "nonexistent key: z", id="remove-what-is-not-there"),
        pytest.param({"op": "add", "path": "/z/y", "value": 1}, 'missing path: "/z/y"', id="no-such-parent"),
        pytest.param({"op": "add", "path": "/a/b/4", "value": 1}, "invalid index: 4", id="beyond-the-end"),
        pytest.param({"op": "add", "path": "/a/b/x", "value": 1}, "array index: 'x'", id="not-an-index"),
        pytest.param({"op": "move", "from": "/z", "path": "/y"}, "nonexistent key: z", id="move-nothing"),
        pytest.param({"op": "frob", "path": "/a"}, "Unexpected kind: frob", id="unknown-operation"),
        pytest.param({"path": "/a"}, "Unexpected kind: unknown", id="no-operation"),
        pytest.param({"op": "add"}, "failed to decode path", id="no-path"),
        pytest.param({"op": "replace", "path": "", "value": 1}, "object or array", id="replace-the-document-by-1"),
    ],
)
def test_refusals(operation: dict[str, Any], want: str) -> None:
    with pytest.raises(jsonpatch.NotApplicableError, match=want):
        jsonpatch.apply(DOCUMENT, [operation])


def test_the_document_given_is_not_changed() -> None:
    document = {"a": [{"b": 1}]}
    patched = jsonpatch.apply(document, [{"op": "replace", "path": "/a/0/b", "value": 2}])
    assert (document, patched) == ({"a": [{"b": 1}]}, {"a": [{"b": 2}]})
