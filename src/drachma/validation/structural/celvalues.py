"""Values of custom resources as CEL sees them: by their schemas, with escaped names and with times that are times.

A field that is null is not there. Data that the schema does not describe can only be compared.
"""

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from drachma.cel.runtime import instants, values
from drachma.validation.structural import declaredtypes, formats, numbers
from drachma.validation.structural.declaredtypes import add_metadata
from drachma.validation.structural.schema import Schema

_UNREACHABLE: Final = "\0"
"""Prefix of the keys that no expression can name."""

Convert: TypeAlias = Callable[[Any, Schema | None], Any]


def convert(value: Any, schema: Schema | None, below: Convert | None = None) -> Any:
    """Return the CEL value of a document that fits its schema; ``below`` converts its parts, if given."""
    if value is None or schema is None:
        return value
    kind = value.__class__
    if kind is dict:
        return _map(value, schema, below or convert)
    if kind is list:
        return _list(value, schema, below or convert)
    if kind is int and schema.type == "number":
        return float(numbers.native(value))
    if kind is float and schema.type == "integer":
        return int(value)
    if kind is str and schema.format and schema.type == "string" and not schema.is_int_or_string:
        reader = _READERS.get(formats.normalized(schema.format))
        if reader is not None:
            return reader(value)
    return value


def convert_resource(value: Any, schema: Schema) -> Any:
    """Return the CEL value of a whole object, whose apiVersion, kind and names are always visible."""
    return convert(value, schema.derive(add_metadata))


def _map(value: dict[str, Any], schema: Schema, below: Convert) -> values.NativeMap:
    result = values.NativeMap()
    if schema.is_embedded_resource:
        schema = schema.derive(add_metadata)
    value_schema = schema.value
    if value_schema is not None and not schema.properties:
        for name, each in value.items():
            result[name] = below(each, value_schema)
        return result
    properties = schema.properties
    for name, each in value.items():
        if each is None:
            continue
        part = properties.get(name)
        escaped = declaredtypes.escape_name(name) if part is not None else None
        result[escaped if escaped is not None else _UNREACHABLE + name] = below(each, part)
    return result


def _list(value: list[Any], schema: Schema, below: Convert) -> list[Any]:
    item = schema.item
    converted = [below(each, item) for each in value]
    if schema.list_type == "set":
        return values.SetList(converted)
    if schema.list_type == "map":
        keys = tuple(declaredtypes.escape_name(name) or _UNREACHABLE + name for name in schema.list_map_keys)
        return values.KeyedList(converted, keys)
    return converted


def _bytes(text: str) -> bytes | str:
    try:
        return base64.b64decode(text, altchars=b"-_")
    except (binascii.Error, ValueError):
        return text


def _date(text: str) -> values.Timestamp | str:
    return instants.read_timestamp(f"{text}T00:00:00Z") or text


def _date_time(text: str) -> values.Timestamp | str:
    upper = text.upper()
    return instants.read_timestamp(upper) or instants.read_timestamp(f"{upper}Z") or text


def _duration(text: str) -> values.Duration | str:
    duration = formats.parse_duration(text)
    return text if duration is None else duration


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "byte": _bytes,
    "date": _date,
    "datetime": _date_time,
    "duration": _duration,
}
