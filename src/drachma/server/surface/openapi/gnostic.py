"""OpenAPI v2 in protobuf, in the form of Google's gnostic: the only form of ``/openapi/v2`` that kubectl reads.

Each table below is a message: the members that a document may have, their field numbers, and the functions that write
them. Other members are omitted, except for extensions, which are written as YAML.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

Document: TypeAlias = Mapping[str, Any]
Write: TypeAlias = Callable[[int, Any], bytes]
Table: TypeAlias = Mapping[str, tuple[int, Write]]

MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

_EXTENSION: Final = "x-"
_VARINT: Final = 0
_DOUBLE: Final = 1
_BYTES: Final = 2

_encode = msgspec.json.Encoder().encode


def encode(document: Document) -> bytes:
    """Return a document in protobuf."""
    return _message(document, _DOCUMENT, extensions=16)


# The wire


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _data(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _text(number: int, value: str) -> bytes:
    return _data(number, value.encode())


def _texts(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_text(number, value) for value in values)


def _whole(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def _real(number: int, value: float) -> bytes:
    return _varint(number << 3 | _DOUBLE) + struct.pack("<d", value)


def _any(number: int, value: Any) -> bytes:
    """Return a field with any value, as YAML; JSON is YAML."""
    return _data(number, _data(2, _encode(value) + b"\n"))


def _anys(number: int, values: Iterable[Any]) -> bytes:
    return b"".join(_any(number, value) for value in values)


# Messages


def _message(document: Document, table: Table, *, extensions: int = 0) -> bytes:
    parts = []
    for name, value in document.items():
        if name in table:
            number, write = table[name]
            parts.append(write(number, value))
        elif extensions and name.startswith(_EXTENSION):
            parts.append(_data(extensions, _text(1, name) + _any(2, value)))
    return b"".join(parts)


def _named(number: int, values: Document, write: Write) -> bytes:
    """Return a map as messages of a name and a value."""
    return b"".join(_data(number, _text(1, name) + write(2, value)) for name, value in values.items())


def _schema(number: int, schema: Document) -> bytes:
    return _data(number, _message(schema, _SCHEMA, extensions=31))


def _schemas(number: int, schemas: Iterable[Document]) -> bytes:
    return b"".join(_schema(number, each) for each in schemas)


def _properties(number: int, properties: Document) -> bytes:
    return _data(number, _named(1, properties, _schema))


def _additional(number: int, value: Any) -> bytes:
    return _data(number, _whole(2, int(value)) if isinstance(value, bool) else _schema(1, value))


def _items(number: int, value: Any) -> bytes:
    return _data(number, _schemas(1, value if isinstance(value, list) else [value]))


def _type(number: int, value: Any) -> bytes:
    return _data(number, _texts(1, value if isinstance(value, list) else [value]))


def _info(number: int, info: Document) -> bytes:
    return _data(number, _message(info, {"title": (1, _text), "version": (2, _text), "description": (3, _text)}))


def _parameters(number: int, parameters: Iterable[Document]) -> bytes:
    return b"".join(_data(number, _data(1, _parameter(each))) for each in parameters)


def _parameter(parameter: Document) -> bytes:
    match parameter.get("in"):
        case "body":
            return _data(1, _message(parameter, _BODY, extensions=6))
        case "path":
            return _data(2, _data(4, _message(parameter, _PATH, extensions=22)))
        case _:
            return _data(2, _data(3, _message(parameter, _QUERY, extensions=23)))


def _responses(number: int, responses: Document) -> bytes:
    return _data(number, _named(1, responses, _response))


def _response(number: int, response: Document) -> bytes:
    table: Table = {"description": (1, _text), "schema": (2, lambda at, schema: _data(at, _schema(1, schema)))}
    return _data(number, _data(1, _message(response, table, extensions=5)))


def _operation(number: int, operation: Document) -> bytes:
    return _data(number, _message(operation, _OPERATION, extensions=13))


def _path_item(number: int, item: Document) -> bytes:
    return _data(number, _message(item, _PATH_ITEM, extensions=10))


def _paths(number: int, paths: Document) -> bytes:
    return _data(number, _named(2, paths, _path_item))


def _requirements(number: int, requirements: Iterable[Mapping[str, Iterable[str]]]) -> bytes:
    def names(at: int, values: Iterable[str]) -> bytes:
        return _data(at, _texts(1, values))

    return b"".join(_data(number, _named(1, each, names)) for each in requirements)


def _securities(number: int, definitions: Document) -> bytes:
    return _data(number, _named(1, definitions, lambda at, each: _data(at, _data(2, _message(each, _API_KEY)))))


_SCHEMA: Final[Table] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _real),
    "maximum": (7, _real),
    "exclusiveMaximum": (8, _whole),
    "minimum": (9, _real),
    "exclusiveMinimum": (10, _whole),
    "maxLength": (11, _whole),
    "minLength": (12, _whole),
    "pattern": (13, _text),
    "maxItems": (14, _whole),
    "minItems": (15, _whole),
    "uniqueItems": (16, _whole),
    "maxProperties": (17, _whole),
    "minProperties": (18, _whole),
    "required": (19, _texts),
    "enum": (20, _anys),
    "additionalProperties": (21, _additional),
    "type": (22, _type),
    "items": (23, _items),
    "allOf": (24, _schemas),
    "properties": (25, _properties),
    "example": (30, _any),
}
_BODY: Final[Table] = {
    "description": (1, _text),
    "name": (2, _text),
    "in": (3, _text),
    "required": (4, _whole),
    "schema": (5, _schema),
}
_QUERY: Final[Table] = {
    "required": (1, _whole),
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
    "type": (6, _text),
    "format": (7, _text),
    "uniqueItems": (20, _whole),
}
_PATH: Final[Table] = {
    "required": (1, _whole),
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
    "type": (5, _text),
    "format": (6, _text),
    "uniqueItems": (19, _whole),
}
_OPERATION: Final[Table] = {
    "tags": (1, _texts),
    "description": (3, _text),
    "operationId": (5, _text),
    "produces": (6, _texts),
    "consumes": (7, _texts),
    "parameters": (8, _parameters),
    "responses": (9, _responses),
    "schemes": (10, _texts),
}
_PATH_ITEM: Final[Table] = {
    "get": (2, _operation),
    "put": (3, _operation),
    "post": (4, _operation),
    "delete": (5, _operation),
    "patch": (8, _operation),
    "parameters": (9, _parameters),
}
_API_KEY: Final[Table] = {"type": (1, _text), "name": (2, _text), "in": (3, _text), "description": (4, _text)}
_DOCUMENT: Final[Table] = {
    "swagger": (1, _text),
    "info": (2, _info),
    "paths": (8, _paths),
    "definitions": (9, _properties),
    "security": (12, _requirements),
    "securityDefinitions": (13, _securities),
}
