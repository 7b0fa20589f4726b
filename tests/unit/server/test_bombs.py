"""Requests that are small, or as large as they may be, and ask for far more: each is refused, or answered at once.

What takes time or memory out of proportion would hang these tests or be killed; no times are measured. The limits are
in ``docs/security.md``.
"""

import base64
import json
from typing import Any

import pytest

from drachma.api import yamldialect
from drachma.server.decoding import jsonsyntax
from tests.unit.server import client

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
YAML = "application/yaml"
DEEP = yamldialect.MAX_DEPTH + 10
UNPROCESSABLE = "the server rejected our request due to an error in our request"


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def configmap(name: str = "a", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def owners(count: int) -> list[dict[str, str]]:
    return [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": f"u{number}"} for number in range(count)]


async def with_configmap(server: client.Client) -> None:
    await server.call("POST", CONFIGMAPS, {**configmap(), "data": {"x": "y" * 1000}})


async def test_copies_that_double_a_document_are_refused(server: client.Client) -> None:
    await with_configmap(server)
    patch = [{"op": "copy", "from": "/data", "path": f"/data/a{number}"} for number in range(24)]
    answer = await server.call("PATCH", f"{CONFIGMAPS}/a", patch, content_type=JSON_PATCH)
    assert (answer.code, answer.body["message"]) == (422, UNPROCESSABLE)


async def test_copies_within_the_limit_are_made(server: client.Client) -> None:
    await with_configmap(server)
    patch = [{"op": "copy", "from": "/data/x", "path": f"/data/a{number}"} for number in range(100)]
    answer = await server.call("PATCH", f"{CONFIGMAPS}/a", patch, content_type=JSON_PATCH)
    assert answer.code == 200
    assert len(answer.body["data"]) == 101


async def test_moves_cannot_nest_a_document_without_end(server: client.Client) -> None:
    await with_configmap(server)
    patch: list[dict[str, Any]] = [{"op": "add", "path": "/p", "value": {}}]
    for number in range(4000):
        here, there = ("p", "q") if number % 2 == 0 else ("q", "p")
        patch += [{"op": "add", "path": f"/{there}", "value": {}}]
        patch += [{"op": "move", "from": f"/{here}", "path": f"/{there}/x"}]
    answer = await server.call("PATCH", f"{CONFIGMAPS}/a", patch, content_type=JSON_PATCH)
    assert (answer.code, answer.body["message"]) == (422, UNPROCESSABLE)


async def test_too_many_operations(server: client.Client) -> None:
    await with_configmap(server)
    patch = [{"op": "test", "path": "/data/x", "value": "y"}] * 10_001
    answer = await server.call("PATCH", f"{CONFIGMAPS}/a", patch, content_type=JSON_PATCH)
    assert answer.code == 413


@pytest.mark.parametrize("levels", [DEEP, 900, 300_000])
@pytest.mark.parametrize(
    ("method", "content_type", "before"),
    [
        pytest.param("POST", "application/json", '{"apiVersion":"v1","kind":"ConfigMap","data":', id="json"),
        pytest.param("POST", YAML, '{"apiVersion":"v1","kind":"ConfigMap","data":', id="yaml"),
        pytest.param("PATCH", MERGE_PATCH, '{"data":', id="merge-patch"),
        pytest.param("PATCH", STRATEGIC, '{"data":', id="strategic-merge-patch"),
        pytest.param("PATCH", JSON_PATCH, '[{"op":"add","path":"/data","value":', id="json-patch"),
        pytest.param("PATCH", APPLY, '{"apiVersion":"v1","kind":"ConfigMap","data":', id="apply"),
        pytest.param("DELETE", "application/json", '{"preconditions":', id="delete"),
    ],
)
async def test_deep_nesting_is_refused(
    server: client.Client, method: str, content_type: str, before: str, levels: int
) -> None:
    await with_configmap(server)
    path = CONFIGMAPS if method == "POST" else f"{CONFIGMAPS}/a?fieldManager=x"
    after = "}]" if before.startswith("[") else "}"
    answer = await server.call(method, path, before + nested(levels) + after, content_type=content_type)
    assert answer.code == 400, answer.body


@pytest.mark.parametrize("levels", [DEEP, 5_000, 300_000])
@pytest.mark.parametrize("before", ['{"a":', '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a-1"},"spec":'])
async def test_deep_nesting_is_refused_of_kinds_that_share_decisions(
    server: client.Client, before: str, levels: int
) -> None:
    """Their names are read before the whole body is."""
    answer = await server.call("POST", client.PODS, before + nested(levels) + "}")
    assert answer.code == 400, answer.body


async def test_deep_nesting_inside_of_opaque_parameters_is_refused(server: client.Client) -> None:
    text = json.dumps(client.claim()).replace('"devices": {', f'"devices": {{"config": [{nested(DEEP)}], ', 1)
    answer = await server.call("POST", client.CLAIMS, text)
    assert answer.code == 400
    assert "exceeded max depth" in answer.body["message"]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(b"[" * 200 + b"]" * 200, False, id="as-deep-as-it-may-be"),
        pytest.param(b"[" * 201 + b"]" * 201, True, id="one-level-too-deep"),
        pytest.param(b'{"a":' * 201 + b"1" + b"}" * 201, True, id="objects"),
        pytest.param(b"[" + b"[]," * 500 + b"[]]", False, id="many-side-by-side"),
        pytest.param(b'["' + b"[" * 500 + b'"]', False, id="brackets-in-a-string"),
        pytest.param(b'["\\"' + b"[" * 500 + b'"]', False, id="brackets-after-an-escaped-quote"),
        pytest.param(b'["' + b"]" * 500 + b'",' + b"[" * 300 + b"]" * 300 + b"]", True, id="a-string-hides-nothing"),
    ],
)
def test_depth(text: bytes, *, want: bool) -> None:
    assert jsonsyntax.is_too_deep(text) is want


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)),
            id="aliases-of-aliases",
        ),
        pytest.param(f'a: &a "{"x" * 1_000_000}"\nb: [{",".join(["*a"] * 100_000)}]\n', id="a-long-text-many-times"),
        pytest.param(
            "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1},*a{n - 1}]}}\n" for n in range(1, 60)),
            id="merges-that-double",
        ),
        pytest.param(
            "a: &a {" + ",".join(f"k{n}: 1" for n in range(10_000)) + "}\nb:\n" + "- <<: *a\n" * 10_000,
            id="merges-side-by-side",
        ),
        pytest.param("b: [" + "{}," * 900_000 + "]\n", id="too-many-values"),
        pytest.param("a: &a [*a]\n", id="an-alias-of-itself"),
        pytest.param("- " * 300_000, id="deep-blocks"),
        pytest.param("[" * 300_000, id="deep-brackets"),
        pytest.param("a: 0x" + "9" * 100_000, id="a-number-too-long-for-anything"),
    ],
)
@pytest.mark.parametrize("content_type", [YAML, APPLY])
async def test_yaml_bombs_are_refused(server: client.Client, text: str, content_type: str) -> None:
    method, path = ("POST", CONFIGMAPS) if content_type == YAML else ("PATCH", f"{CONFIGMAPS}/a?fieldManager=x")
    answer = await server.call(method, path, text, content_type=content_type)
    assert answer.code == 400, answer.body


async def test_many_owners_and_finalizers_are_merged(server: client.Client) -> None:
    """Lists with identities are as long as a body may be, and each patch compares two of them."""
    await with_configmap(server)
    metadata: dict[str, Any] = {
        "ownerReferences": owners(8_000),
        "finalizers": [f"example.com/f{n}" for n in range(8_000)],
    }
    for content_type, body in ((STRATEGIC, {"metadata": metadata}), (APPLY, configmap(**metadata))):
        for _ in range(2):
            path = f"{CONFIGMAPS}/a?fieldManager=x&force=true"
            answer = await server.call("PATCH", path, body, content_type=content_type)
            assert answer.code in (200, 422), answer.body["message"][:300]


async def test_patches_cannot_grow_an_object_without_end(server: client.Client) -> None:
    await with_configmap(server)
    codes = []
    for number in range(4):
        more = [f"example.com/{number}-{'x' * 50}-{count}" for count in range(30_000)]
        body = {"metadata": {"finalizers": more}}
        codes.append((await server.call("PATCH", f"{CONFIGMAPS}/a", body, content_type=STRATEGIC)).code)
    assert codes[0] == 200
    assert codes[-1] == 413


async def test_an_answer_tells_of_some_errors_where_there_are_very_many(server: client.Client) -> None:
    body = {**configmap(), "data": {f"no key {number}": "" for number in range(3_000)}}
    answer = await server.call("POST", CONFIGMAPS, body)
    assert answer.code == 422
    assert len(answer.body["details"]["causes"]) == 1000


async def test_many_controllers_do_not_multiply(server: client.Client) -> None:
    references = [{**owner, "controller": True} for owner in owners(1_000)]
    answer = await server.call("POST", CONFIGMAPS, configmap(ownerReferences=references))
    assert answer.code == 422
    assert len(answer.body["details"]["causes"]) <= 10


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("&".join(f"a{number}=1" for number in range(2000)), id="many-parameters"),
        pytest.param("limit=" + "9" * 10_000, id="a-long-number"),
        pytest.param("resourceVersion=" + "9" * 10_000, id="a-long-version"),
        pytest.param("continue=" + base64.urlsafe_b64encode(b'{"v":' + b"[" * 100_000).decode(), id="a-deep-token"),
        pytest.param("continue=" + base64.urlsafe_b64encode(b'{"rv":' + b"9" * 10_000 + b"}").decode(), id="token"),
        pytest.param("labelSelector=" + "(" * 10_000, id="brackets-in-a-selector"),
    ],
)
async def test_queries_are_refused(server: client.Client, query: str) -> None:
    answer = await server.call("GET", f"{CONFIGMAPS}?{query}")
    assert answer.code == 400, answer.body
