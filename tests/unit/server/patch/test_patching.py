"""The front of the patches: which Status answers which mistake, and what is only warned about."""

import pytest

from drachma.server import status
from drachma.server.patch import patching
from tests.unit.server import served

CONFIG_MAP = served.schema("v1", "ConfigMap")
DOCUMENT = {"metadata": {"name": "c"}, "data": {"a": "1"}}


def _apply(kind: str, body: bytes, *, field_validation: str = "Warn") -> patching.Patched:
    return patching.apply(
        DOCUMENT,
        content_type=f"application/{kind}-patch+json",
        body=body,
        schema=CONFIG_MAP,
        field_validation=field_validation,
    )


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param("json", b'[{"op":"add","path":"/data/b","value":"2"}]', id="json"),
        pytest.param("merge", b'{"data":{"b":"2"}}', id="merge"),
        pytest.param("strategic-merge", b'{"data":{"b":"2"}}', id="strategic"),
    ],
)
def test_all_kinds_of_patch(kind: str, body: bytes) -> None:
    assert _apply(kind, body) == ({"metadata": {"name": "c"}, "data": {"a": "1", "b": "2"}}, ())


@pytest.mark.parametrize(
    ("kind", "body", "field_validation", "code", "want"),
    [
        pytest.param("json", b"{not", "Warn", 400, "invalid JSON patch", id="not-json"),
        pytest.param(
            "json",
            b"{}",
            "Warn",
            400,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            id="json-patch-is-no-list",
        ),
        pytest.param(
            "json",
            b"{}",
            "Ignore",
            400,
            "json: cannot unmarshal object into Go value of type jsonpatch.Patch",
            id="json-patch-is-no-list-unchecked",
        ),
        pytest.param(
            "json",
            b'[{"op":1}]',
            "Warn",
            400,
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
            id="operation-is-no-text",
        ),
        pytest.param(
            "json",
            b"[null]",
            "Warn",
            422,
            "the server rejected our request due to an error in our request",
            id="operation-is-null",
        ),
        pytest.param(
            "merge",
            b"[]",
            "Warn",
            400,
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            id="merge-patch-is-no-map",
        ),
        pytest.param("merge", b"null", "Warn", 400, "Invalid JSON Patch", id="merge-patch-is-null"),
        pytest.param("merge", b"1", "Ignore", 400, "Invalid JSON Patch", id="merge-patch-is-a-number-unchecked"),
        pytest.param(
            "strategic-merge",
            b"[]",
            "Warn",
            400,
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
            id="strategic-patch-is-no-map",
        ),
        pytest.param(
            "strategic-merge",
            b'{"metadata":{"$setElementOrder/finalizers":{}}}',
            "Warn",
            500,
            "expected a []interface {}, but received a map[string]interface {}",
            id="strategic-order-is-no-list",
        ),
    ],
)
def test_refusals(kind: str, body: bytes, field_validation: str, code: int, want: str) -> None:
    with pytest.raises(status.StatusError) as refused:
        _apply(kind, body, field_validation=field_validation)
    assert (refused.value.code, refused.value.document["message"]) == (code, want)


def test_null_is_an_empty_strategic_patch() -> None:
    assert _apply("strategic-merge", b"null").document == DOCUMENT


def test_too_many_operations() -> None:
    body = b"[" + b",".join([b'{"op":"test","path":"/metadata/name","value":"c"}'] * 10_001) + b"]"
    with pytest.raises(status.StatusError, match="maximum operations in a JSON patch is 10000, got 10001") as refused:
        _apply("json", body)
    assert refused.value.code == 413


def test_sloppy_operations_are_told_unless_ignored() -> None:
    body = b'[{"op":"add","path":"/data/b","value":"x","bogus":1,"op":"add"}]'
    assert _apply("json", body).problems == (
        'json patch unknown field "[0].bogus"',
        'json patch duplicate field "[0].op"',
    )
    assert _apply("json", body, field_validation="Ignore").problems == ()
    assert _apply("merge", b'{"data":{"k":null,"k":"1"}}').problems == ('duplicate field "data.k"',)
