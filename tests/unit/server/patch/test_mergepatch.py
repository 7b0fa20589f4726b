"""Merge patch: set, remove, replace lists; nulls never reach the document through an object."""

from typing import Any

import pytest

from drachma.server.patch import mergepatch


@pytest.mark.parametrize(
    ("document", "patch", "want"),
    [
        pytest.param({"a": 1}, {"b": {"c": 2}}, {"a": 1, "b": {"c": 2}}, id="add"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}, id="remove"),
        pytest.param({"a": 1}, {"b": {"c": None, "d": 1}}, {"a": 1, "b": {"d": 1}}, id="nulls-in-what-is-new"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists-are-replaced"),
        pytest.param({"a": "x"}, {"a": {"b": None}}, {"a": {}}, id="object-for-a-scalar"),
        pytest.param({"a": {"b": 1}}, {"a": [None]}, {"a": [None]}, id="list-for-an-object"),
    ],
)
def test_apply(document: dict[str, Any], patch: dict[str, Any], want: dict[str, Any]) -> None:
    before = repr((document, patch))
    assert mergepatch.apply(document, patch) == want
    assert repr((document, patch)) == before
