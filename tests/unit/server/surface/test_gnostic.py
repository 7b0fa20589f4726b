"""OpenAPI v2 in protobuf: read back by a small reader that knows nothing but the wire."""

from typing import Any

from drachma.server.surface.openapi import gnostic
from tests.unit.server import client
from tests.unit.server.client import Client

OLD_NAME = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a message: numbers with bytes or integers."""
    result: list[tuple[int, Any]] = []
    position = 0
    while position < len(data):
        key, position = varint(data, position)
        if key & 7 == 2:
            size, position = varint(data, position)
            result.append((key >> 3, data[position : position + size]))
            position += size
        elif key & 7 == 1:
            result.append((key >> 3, data[position : position + 8]))
            position += 8
        else:
            value, position = varint(data, position)
            result.append((key >> 3, value))
    return result


def varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def only(data: bytes, number: int) -> Any:
    (value,) = [value for key, value in fields(data) if key == number]
    return value


def by_name(data: bytes, number: int) -> dict[str, bytes]:
    """Messages of a name and a value each."""
    return {only(item, 1).decode(): only(item, 2) for key, item in fields(data) if key == number}


def test_a_small_document() -> None:
    schema = {
        "type": "object",
        "description": "d",
        "required": ["a"],
        "properties": {"a": {"$ref": "#/definitions/B"}, "n": {"type": "array", "items": {"type": "string"}}},
        "x-kubernetes-group-version-kind": [{"kind": "A"}],
    }
    parameters = [{"name": "dryRun", "in": "query", "type": "string", "uniqueItems": True}]
    operation = {"tags": ["t"], "parameters": parameters, "responses": {"200": {"description": "OK"}}}
    encoded = gnostic.encode({"swagger": "2.0", "paths": {"/a": {"patch": operation}}, "definitions": {"A": schema}})
    assert only(encoded, 1) == b"2.0"
    created = by_name(only(encoded, 9), 1)["A"]
    assert only(only(created, 22), 1) == b"object"
    assert only(created, 19) == b"a"
    assert only(by_name(only(created, 25), 1)["a"], 1) == b"#/definitions/B"
    assert only(only(created, 31), 1) == b"x-kubernetes-group-version-kind"
    assert only(only(only(created, 31), 2), 2) == b'[{"kind":"A"}]\n'
    patch = only(by_name(only(encoded, 8), 2)["/a"], 8)
    query = only(only(only(only(patch, 8), 1), 2), 3)
    assert (only(query, 4), only(query, 20)) == (b"dryRun", 1)


async def test_kubectl_gets_everything_under_the_name_it_asks_for(server: Client) -> None:
    answer = await server.raw("GET", "/openapi/v2", b"", headers={"accept": OLD_NAME})
    assert answer.code == 200
    assert dict(answer.headers)["content-type"] == gnostic.MEDIA_TYPE
    assert "io.k8s.api.resource.v1.ResourceClaim" in by_name(only(answer.data, 9), 1)
    assert f"{client.CLAIMS.replace('default', '{namespace}')}/{{name}}" in by_name(only(answer.data, 8), 2)


async def test_another_form_is_refused(server: Client) -> None:
    assert (await server.call("GET", "/openapi/v2", headers={"accept": "text/html"})).code == 406
    assert (await server.call("GET", "/openapi/v2")).body["swagger"] == "2.0"
