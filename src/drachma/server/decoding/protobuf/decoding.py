"""Protobuf messages of Kubernetes kinds, decoded to the documents of their JSON form.

A body is an envelope with apiVersion, kind and the message. Go writes every field that is not a pointer, even if it is
zero; such a zero counts as absent, as in Go's JSON. Bytes that are not a message, and values that do not fit their
field, raise a DecodeError. Fields with unknown numbers are skipped, as in Go.
"""

import base64
import functools
import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

from drachma import errors
from drachma.api import types
from drachma.api.types import model
from drachma.server.decoding import jsonsyntax

MAGIC: Final = b"k8s\x00"
_MAX_DEPTH: Final = 100
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
Value: TypeAlias = int | bytes
Read: TypeAlias = Callable[[Value, int], Any]


class _Field(NamedTuple):
    """Reader of one field; ``form`` is one, list, map or embedded."""

    name: str
    form: str
    read: Read
    keeps_zero: bool


def decode(body: bytes, find_type: Callable[[str, str], model.Object | None]) -> dict[str, Any]:
    """Return the document in an envelope, with apiVersion and kind; only these if the kind is unknown.

    Raises:
        errors.DecodeError: the body is no envelope, or its message does not fit the type.
    """
    api_version, kind, message = _open(body)
    schema = find_type(api_version, kind)
    if schema is None:
        return {"apiVersion": api_version, "kind": kind}
    return {"apiVersion": api_version, "kind": kind, **_message(message, schema, 0)}


def decode_delete_options(body: bytes) -> dict[str, Any]:
    """Return the options of a delete, in the envelope of any group."""
    api_version, kind, message = _open(body)
    return {"apiVersion": api_version, "kind": kind, **_message(message, types.get("meta/v1.DeleteOptions"), 0)}


def _open(body: bytes) -> tuple[str, str, bytes]:
    if not body.startswith(MAGIC):
        raise errors.DecodeError(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    api_version = kind = ""
    message = b""
    for number, value in _fields(body[len(MAGIC) :]):
        if number == 1:
            for part, text in _fields(_bytes(value)):
                if part == 1:
                    api_version = _text(text, 0)
                elif part == 2:
                    kind = _text(text, 0)
        elif number == 2:
            message = _bytes(value)
    return api_version, kind, message


def _message(data: bytes, schema: model.Object, depth: int) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        raise errors.DecodeError(f"protobuf: nested deeper than {_MAX_DEPTH} messages")
    document: dict[str, Any] = {}
    _fill(document, data, schema.plan(_Plan).fields, depth)
    return document


def _fill(document: dict[str, Any], data: bytes, plan: Mapping[int, _Field], depth: int) -> None:
    for number, value in _fields(data):
        field = plan.get(number)
        if field is None:
            continue
        if field.form == "embedded":
            document.update(field.read(value, depth + 1))
            continue
        if field.form == "map":
            key, item = _entry(_bytes(value), field.read, depth)
            document.setdefault(field.name, {})[key] = item
            continue
        decoded = field.read(value, depth + 1)
        if field.form == "list":
            document.setdefault(field.name, []).append(decoded)
        elif decoded is not None and (field.keeps_zero or decoded not in ("", 0, False)):
            document[field.name] = decoded


def _entry(data: bytes, reader: Read, depth: int) -> tuple[str, Any]:
    key, item = "", None
    for number, value in _fields(data):
        if number == 1:
            key = _text(value, 0)
        elif number == 2:
            item = reader(value, depth + 1)
    return key, item


# Plans: how to read each field of a message


class _Plan:
    """Readers of the fields of a type, by number."""

    def __init__(self) -> None:
        self.fields: dict[int, _Field] = {}

    def complete(self, schema: model.Object) -> None:
        self.fields |= _plan_fields(schema, schema.message)


def _plan_fields(schema: model.Object, message: model.Message) -> Iterator[tuple[int, _Field]]:
    for number, entry in message.items():
        if entry.embedded is not None:
            below = dict(_plan_fields(schema, entry.embedded))
            yield number, _Field("", "embedded", functools.partial(_read_embedded, below), keeps_zero=True)
            continue
        field = schema.fields.get(entry.name)
        if field is None:
            continue
        match field.type:
            case model.ListOf(element=element):
                yield number, _Field(entry.name, "list", _reader(element), keeps_zero=True)
            case model.MapOf(element=element):
                yield number, _Field(entry.name, "map", _reader(element), keeps_zero=True)
            case other:
                is_message = not isinstance(other, model.Scalar)
                keeps_zero = entry.is_pointer or is_message
                yield number, _Field(entry.name, "one", _reader(other), keeps_zero=keeps_zero)


def _read_embedded(plan: Mapping[int, _Field], value: Value, depth: int) -> dict[str, Any]:
    document: dict[str, Any] = {}
    _fill(document, _bytes(value), plan, depth)
    return document


def _reader(schema: model.Type) -> Read:
    match schema:
        case model.Object():
            return lambda value, depth: _message(_bytes(value), schema, depth)
        case model.Free():
            return _raw
        case model.Scalar(name=name):
            return _SCALARS[name]
        case model.ListOf(element=element):
            reader = _reader(element)
            return lambda value, depth: [reader(item, depth) for _, item in _fields(_bytes(value))]
        case model.MapOf():
            raise TypeError("protobuf has no maps of maps")


# Scalars


def _text(value: Value, _depth: int) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError as error:
        raise errors.DecodeError(f"protobuf: a text is not UTF-8: {error}") from None


def _integer(value: Value, _depth: int) -> int:
    if not isinstance(value, int):
        raise errors.DecodeError("protobuf: expected an integer, found bytes")
    return value - 2**64 if value >= 2**63 else value


def _double(value: Value, _depth: int) -> float:
    data = _bytes(value)
    if len(data) != 8:
        raise errors.DecodeError("protobuf: expected a double of 8 bytes")
    number: float = struct.unpack("<d", data)[0]
    return number


def _boolean(value: Value, _depth: int) -> bool:
    return _integer(value, 0) != 0


def _base64(value: Value, _depth: int) -> str:
    return base64.b64encode(_bytes(value)).decode()


def _quantity(value: Value, _depth: int) -> str | None:
    text = next((_text(item, 0) for number, item in _fields(_bytes(value)) if number == 1), "")
    return text or "0"


def _time(value: Value, _depth: int) -> str | None:
    """Return a time. A zero time is an empty message, and absent in JSON."""
    parts = {number: _integer(item, 0) for number, item in _fields(_bytes(value))}
    if not parts:
        return None
    return _moment(parts).isoformat(timespec="seconds")[:19] + "Z"


def _micro_time(value: Value, _depth: int) -> str | None:
    parts = {number: _integer(item, 0) for number, item in _fields(_bytes(value))}
    if not parts:
        return None
    return _moment(parts).isoformat(timespec="microseconds")[:26] + "Z"


def _moment(parts: Mapping[int, int]) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=parts.get(1, 0), microseconds=parts.get(2, 0) // 1000)
    except OverflowError:
        raise errors.DecodeError(f"protobuf: time out of range: {parts.get(1, 0)} seconds") from None


def _int_or_string(value: Value, _depth: int) -> int | str:
    parts = dict(_fields(_bytes(value)))
    if parts.get(1, 0) == 0:
        return _integer(parts.get(2, 0), 0)
    return _text(parts.get(3, b""), 0)


def _raw(value: Value, _depth: int) -> Any:
    """Return JSON that is embedded in protobuf."""
    text = next((_bytes(item) for number, item in _fields(_bytes(value)) if number == 1), b"")
    if not text:
        return None
    try:
        return jsonsyntax.read(text)
    except errors.DecodeError as error:
        raise errors.DecodeError(f"protobuf: raw value is not JSON: {error}") from None


_SCALARS: Final[Mapping[str, Read]] = {
    "str": _text,
    "bool": _boolean,
    "int32": _integer,
    "int64": _integer,
    "float64": _double,
    "bytes": _base64,
    "Quantity": _quantity,
    "Time": _time,
    "MicroTime": _micro_time,
    "IntOrString": _int_or_string,
}


# The wire


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the fields of a message in order: their number, and an integer or bytes."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        size, position = _size(data, position, kind)
        if position + size > end:
            raise errors.DecodeError("protobuf: unexpected EOF")
        yield number, data[position : position + size]
        position += size


def _size(data: bytes, position: int, kind: int) -> tuple[int, int]:
    match kind:
        case 1:
            return 8, position
        case 2:
            return _varint(data, position)
        case 5:
            return 4, position
    raise errors.DecodeError(f"protobuf: illegal wireType {kind}")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data):
            raise errors.DecodeError("protobuf: unexpected EOF")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
        if shift >= 70:
            raise errors.DecodeError("protobuf: integer overflow")


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise errors.DecodeError("protobuf: expected bytes, found an integer")
    return value
