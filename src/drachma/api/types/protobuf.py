"""Protobuf messages of Kubernetes kinds, encoded from the documents of their JSON form.

Fields are written in the order of their numbers. A field that is absent in the document is absent in the message: Go
reads it as its zero value.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from drachma.api.types import model

_VARINT: Final = 0
_DOUBLE: Final = 1
_BYTES: Final = 2

Write: TypeAlias = Callable[[Any], bytes]
"""Function that encodes a value without its tag."""


def encode(document: Mapping[str, Any], schema: model.Object) -> bytes:
    """Return the message of a document that fits its type. Fields without a number in the type are left out."""
    return _message(document, schema, schema.message)


def _message(document: Mapping[str, Any], schema: model.Object, message: model.Message) -> bytes:
    parts: list[bytes] = []
    for number in sorted(message):
        entry = message[number]
        if entry.embedded is not None:
            parts.append(_tagged(number, _BYTES, _sized(_message(document, schema, entry.embedded))))
            continue
        field, value = schema.fields.get(entry.name), document.get(entry.name)
        if field is not None and value is not None:
            parts += _field(number, field.type, value)
    return b"".join(parts)


def _field(number: int, schema: model.Type, value: Any) -> list[bytes]:
    match schema:
        case model.ListOf(element=element):
            return [_tagged(number, *_value(element, each)) for each in value]
        case model.MapOf(element=element):
            entries = (
                _tagged(1, _BYTES, _sized(key.encode())) + _tagged(2, *_value(element, item))
                for key, item in sorted(value.items())
            )
            return [_tagged(number, _BYTES, _sized(entry)) for entry in entries]
        case _:
            return [_tagged(number, *_value(schema, value))]


def _value(schema: model.Type, value: Any) -> tuple[int, bytes]:
    """Return the wire type of a value, and its bytes."""
    match schema:
        case model.Object():
            return _BYTES, _sized(encode(value, schema))
        case model.Free():
            return _BYTES, _sized(_tagged(1, _BYTES, _sized(json.dumps(value, separators=(",", ":")).encode())))
        case model.Scalar(name="bool" | "int32" | "int64"):
            return _VARINT, _varint(int(value))
        case model.Scalar(name="float64"):
            return _DOUBLE, struct.pack("<d", value)
        case model.Scalar(name=name):
            return _BYTES, _sized(_SCALARS[name](value))
        case model.ListOf(element=element):
            return _BYTES, _sized(b"".join(_tagged(1, *_value(element, each)) for each in value))
        case model.MapOf():
            raise TypeError("protobuf has no maps of maps")


def _quantity(value: Any) -> bytes:
    return _tagged(1, _BYTES, _sized(str(value).encode()))


def _time(value: str) -> bytes:
    moment = datetime.fromisoformat(value.replace("Z", "+00:00")).astimezone(UTC)
    nanoseconds = moment.microsecond * 1000
    seconds = int(moment.replace(microsecond=0).timestamp())
    return _tagged(1, _VARINT, _varint(seconds)) + (_tagged(2, _VARINT, _varint(nanoseconds)) if nanoseconds else b"")


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, int):
        return _tagged(1, _VARINT, _varint(0)) + _tagged(2, _VARINT, _varint(value))
    return _tagged(1, _VARINT, _varint(1)) + _tagged(3, _BYTES, _sized(value.encode()))


_SCALARS: Final[Mapping[str, Write]] = {
    "str": lambda value: str(value).encode(),
    "bytes": base64.b64decode,
    "Quantity": _quantity,
    "Time": _time,
    "MicroTime": _time,
    "IntOrString": _int_or_string,
}


# The wire


def _tagged(number: int, kind: int, data: bytes) -> bytes:
    return _varint(number << 3 | kind) + data


def _sized(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(value: int) -> bytes:
    value &= 0xFFFF_FFFF_FFFF_FFFF
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
