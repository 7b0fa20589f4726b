"""The CEL types of schemas, with the bounds on sizes from which the cost of rules is estimated.

Fields of types that CEL has no word for cannot be used in rules. What may be larger than any request is bounded by the
largest request, and by how little room one more item takes in it.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from drachma.bounds import memory
from drachma.cel import sizes, types
from drachma.validation.structural.schema import Schema

_RESERVED: Final = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    }
)  # fmt: skip
_SPECIAL: Final = re.compile(r"__|[-./]")
_WORDS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_is_escapable: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*").fullmatch


@memory.remember(entries=4096, longest=256)
def escape_name(name: str) -> str | None:
    """The identifier for a field; None for names that have none, which no expression can reach."""
    if not _is_escapable(name):
        return None
    if name in _RESERVED:
        return f"__{name}__"
    return _SPECIAL.sub(lambda match: _WORDS[match[0]], name)


LARGEST_REQUEST: Final = 3 * 1024 * 1024
"""Bytes of the largest request that upstream reckons with."""

_NAME_LENGTH: Final = 253
_STRING_BYTES: Final = 2
_NUMBER_BYTES: Final = 1
_BOOLEAN_BYTES: Final = 4
_CHARACTER_BYTES: Final = 4
_TIMES: Final = {
    "duration": (types.DURATION, 3, 32),
    "date": (types.TIMESTAMP, 12, 12),
    "date-time": (types.TIMESTAMP, 21, 32),
}
"""For each format its type, the shortest text in JSON, and the longest."""


class Declared(msgspec.Struct, frozen=True, eq=False):
    """A type with its bound. ``least`` is how many bytes a value takes in JSON; ``fields`` those of an object."""

    type: types.Type
    bound: sizes.Bound
    least: int
    objects: Mapping[str, Mapping[str, types.Type]] = {}


_BOOLEAN: Final = Declared(types.BOOL, sizes.Bound(0), _BOOLEAN_BYTES)
_INTEGER: Final = Declared(types.INT, sizes.Bound(0), _NUMBER_BYTES)
_NUMBER: Final = Declared(types.DOUBLE, sizes.Bound(0), _NUMBER_BYTES)
_KEY: Final = sizes.Bound(0)


def declare(schema: Schema, *, name: str = "selfType", is_resource: bool = False) -> Declared | None:
    """The type of values of a schema; None where CEL has none. ``name`` is that of the type, if it is an object's."""
    if schema.is_int_or_string:
        most = LARGEST_REQUEST - 2 if schema.max_length is None else _characters(schema.max_length)
        return Declared(types.DYN, sizes.Bound(most), _NUMBER_BYTES)
    if is_resource or schema.is_embedded_resource:
        schema = add_metadata(schema)
    match schema.type:
        case "array":
            return _list(schema, name)
        case "object":
            return _map(schema, name) if schema.value is not None else _object(schema, name)
        case "string":
            return _text(schema)
        case "boolean":
            return _BOOLEAN
        case "number":
            return _NUMBER
        case "integer":
            return _INTEGER
    return None


def _list(schema: Schema, name: str) -> Declared | None:
    item = declare(schema.item, name=f"{name}.@idx") if schema.item is not None else None
    if item is None:
        return None
    most = (LARGEST_REQUEST - 2) // (item.least + 1) if schema.max_items is None else max(schema.max_items, 0)
    return Declared(types.list_of(item.type), sizes.Bound(most, element=item.bound), 2, item.objects)


def _map(schema: Schema, name: str) -> Declared | None:
    assert schema.value is not None, "a map has values"
    value = declare(schema.value, name=f"{name}.@elem")
    if value is None:
        return None
    most = (LARGEST_REQUEST - 2) // (value.least + 6)
    if schema.max_properties is not None:
        most = max(schema.max_properties, 0)
    bound = sizes.Bound(most, key=_KEY, element=value.bound)
    return Declared(types.map_of(types.STRING, value.type), bound, 2, value.objects)


def _object(schema: Schema, name: str) -> Declared:
    fields: dict[str, types.Type] = {}
    bounds: dict[str, sizes.Bound] = {}
    objects: dict[str, Mapping[str, types.Type]] = {}
    least = 2
    for field, part in schema.properties.items():
        escaped = escape_name(field)
        declared = declare(part, name=f"{name}.{escaped or field}")
        if declared is None:
            continue
        if escaped is not None:
            fields[escaped], bounds[escaped] = declared.type, declared.bound
            objects.update(declared.objects)
        if field in schema.required and not part.has_default:
            least += len(field) + declared.least + 4
    objects[name] = fields
    return Declared(types.object_type(name), sizes.Bound(0, fields=bounds), least, objects)


def _text(schema: Schema) -> Declared:
    if schema.format in _TIMES:
        kind, least, most = _TIMES[schema.format]
        return Declared(kind, sizes.Bound(most), least)
    if schema.format == "byte":
        most = LARGEST_REQUEST - 2 if schema.max_length is None else max(schema.max_length, 0)
        return Declared(types.BYTES, sizes.Bound(most), _STRING_BYTES)
    if schema.max_length is not None:
        most = _characters(schema.max_length)
    elif schema.enum:
        most = max((len(each.encode()) for each in schema.enum if isinstance(each, str)), default=0)
    else:
        most = LARGEST_REQUEST - 2
    return Declared(types.STRING, sizes.Bound(most), _STRING_BYTES)


def _characters(count: int) -> int:
    """The most bytes of so many characters."""
    return max(count, 0) * _CHARACTER_BYTES


_PLAIN: Final = Schema(type="string")


def add_metadata(schema: Schema) -> Schema:
    """The schema of a resource with what rules can always see of one: apiVersion, kind, name and generateName."""
    metadata = schema.properties.get("metadata")
    name_field = metadata.properties if metadata is not None else {}
    names = {
        "name": _capped(name_field.get("name"), _NAME_LENGTH),
        # What is generated is at least one character.
        "generateName": _capped(name_field.get("generateName"), _NAME_LENGTH - 1),
    }
    envelope = {"kind": _PLAIN, "apiVersion": _PLAIN, "metadata": Schema(type="object", properties=names)}
    return schema.changed(properties={**schema.properties, **envelope})


def _capped(schema: Schema | None, most: int) -> Schema:
    own = schema.max_length if schema is not None else None
    return Schema(type="string", max_length=most if own is None else min(own, most))
