"""Refused patches as upstream shows them: sorted where the patch went, otherwise as the document was."""

from typing import Any

import pytest

from drachma.server.patch import patchdump

DOCUMENT = {"kind": "K", "apiVersion": "v1", "metadata": {"name": "n", "labels": {"b": "<", "a": "1"}}}


@pytest.mark.parametrize(
    ("patch", "want"),
    [
        pytest.param(
            {"kind": "K"},
            '{"apiVersion":"v1","kind":"K","metadata":{"name":"n","labels":{"b":"\\u003c","a":"1"}}}',
            id="top",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": "1"}}},
            '{"apiVersion":"v1","kind":"K","metadata":{"labels":{"a":"1","b":"\\u003c"},"name":"n"}}',
            id="deep",
        ),
    ],
)
def test_merge(patch: Any, want: str) -> None:
    assert patchdump.format_merged(DOCUMENT, patch) == want


def test_operations_open_what_is_on_their_way() -> None:
    shown = patchdump.format_operated(DOCUMENT, [{"op": "add", "path": "/metadata/name", "value": "n"}])
    assert shown == '{"apiVersion":"v1","kind":"K","metadata":{"labels":{"b":"\\u003c","a":"1"},"name":"n"}}'
