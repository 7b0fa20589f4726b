"""What Go's decoder says about a document whose values do not have the types of its kind.

Clients know these messages. They name Go's types, which the schema's objects are named after; where Go has a named
string type the field says so. Complete kinds only come here once decoding has failed; the others are checked by it.

Almost all documents are good, as ``server.schema.typecheck`` knows; only others are walked through, for the words.
"""

import base64
import binascii
import re
from datetime import datetime
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from drachma import errors
from drachma.api import hooks
from drachma.server.schema import model, typecheck
from drachma.values import quantity

_SELF_READING: Final = frozenset({"Quantity", "Time", "MicroTime", "IntOrString"})
_TIME_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_TIME_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
_SECONDS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_MICRO_SECONDS: Final = re.compile(_SECONDS.pattern + r"\.\d{6}(?!\d)")
_LIMITS: Final = {"int32": 2**31, "int64": 2**63}


class Owner(NamedTuple):
    """Where a value stands: the name of its object and its field, and Go's name for the type of the field."""

    object: str
    field: str
    go_type: str = ""

    @classmethod
    def of(cls, schema: model.Object, field: model.Field) -> "Owner":
        return cls(schema.name, field.name, field.go_type)


_NOBODY: Final = Owner("", "")


class _Mismatch(Exception):  # noqa: N818 - never leaves this module
    """The first value of a wrong type."""


def explain(document: Any, schema: model.Object) -> str:
    """Go's message about the first value of a wrong type, in the document's order; empty if there is none."""
    return "" if typecheck.in_types(document, schema) else explained(document, schema)


def explained(document: Any, schema: model.Object) -> str:
    """The same by looking at every value, which is the slow way to find that there is none.

    Go goes on after a wrong type, to the end or to a value whose type reads itself and fails; of that it speaks first.
    """
    try:
        _read_themselves(document, schema, path="", owner=_NOBODY)
        _object(document, schema, path="", owner=_NOBODY)
    except _Mismatch as error:
        return str(error)
    return ""


def explain_alone(value: Any, wanted: model.Scalar) -> str:
    """What a type that reads itself says about a value, where nobody tells it in which field that is."""
    try:
        _scalar(value, wanted, path="", owner=_NOBODY)
    except _Mismatch as error:
        return str(error)
    return ""


def type_name(wanted: model.Type, owner: Owner) -> str:
    """The name of the Go type of a field; ``owner`` is where it stands."""
    return _type(wanted, owner)


def describe(value: Any) -> str:
    """Go's word for the type of a JSON value."""
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return "number"
        case dict():
            return "object"
        case _:
            return "array"


def _object(value: Any, schema: model.Object, *, path: str, owner: Owner) -> None:
    if not isinstance(value, dict):
        _refuse(value, schema, path=path, owner=owner)
    for key, item in value.items():
        field = schema.fields.get(key)
        if field is not None and item is not None:
            _value(item, field.type, path=_below(path, field), owner=Owner.of(schema, field))


def _below(path: str, field: model.Field) -> str:
    """The path of a field, with the structs that Go's messages name on the way."""
    name = f"{field.go_parent}.{field.name}" if field.go_parent else field.name
    return f"{path}.{name}" if path else name


def _read_themselves(value: Any, wanted: model.Type, *, path: str, owner: Owner) -> None:
    """Finds values whose types read themselves, and cannot."""
    match wanted:
        case model.Object() if isinstance(value, dict):
            for key, item in value.items():
                field = wanted.fields.get(key)
                if field is not None:
                    _read_themselves(item, field.type, path=_below(path, field), owner=Owner.of(wanted, field))
        case model.MapOf(element=element) if isinstance(value, dict):
            for item in value.values():
                _read_themselves(item, element, path=path, owner=owner)
        case model.ListOf(element=element) if isinstance(value, list):
            for item in value:
                _read_themselves(item, element, path=path, owner=owner)
        case model.Scalar(name=name) if name in _SELF_READING and value is not None:
            _scalar(value, wanted, path=path, owner=owner)


def _value(value: Any, wanted: model.Type, *, path: str, owner: Owner) -> None:
    match wanted:
        case model.Object():
            _object(value, wanted, path=path, owner=owner)
        case model.MapOf():
            if not isinstance(value, dict):
                _refuse(value, wanted, path=path, owner=owner)
            for item in value.values():
                if item is not None:
                    _value(item, wanted.element, path=path, owner=owner)
        case model.ListOf():
            if not isinstance(value, list):
                _refuse(value, wanted, path=path, owner=owner)
            for item in value:
                if item is not None:
                    _value(item, wanted.element, path=path, owner=owner)
        case model.Scalar():
            _scalar(value, wanted, path=path, owner=owner)
        case model.Free():
            pass


def _scalar(value: Any, wanted: model.Scalar, *, path: str, owner: Owner) -> None:
    match wanted.name:
        case "str":
            if not isinstance(value, str):
                _refuse(value, wanted, path=path, owner=owner)
        case "bool":
            if not isinstance(value, bool):
                _refuse(value, wanted, path=path, owner=owner)
        case "int32" | "int64":
            limit = _LIMITS[wanted.name]
            if not isinstance(value, int) or isinstance(value, bool) or not -limit <= value < limit:
                _refuse(value, wanted, path=path, owner=owner)
        case "float64":
            if not isinstance(value, int | float) or isinstance(value, bool):
                _refuse(value, wanted, path=path, owner=owner)
        case "bytes":
            if not isinstance(value, str):
                _refuse(value, wanted, path=path, owner=owner)
            _base64(value)
        case "Quantity":
            _quantity(value)
        case "Time":
            if not isinstance(value, str):
                _refuse(value, model.STRING, path=path, owner=owner)
            _time(value, layout=_TIME_LAYOUT)
        case "MicroTime":
            if not isinstance(value, str):
                _refuse(value, model.STRING, path=path, owner=owner)
            _time(value, layout=_MICRO_TIME_LAYOUT)
        case "IntOrString":
            if not isinstance(value, str | int) or isinstance(value, bool):
                _refuse(value, model.INT32, path=path, owner=owner)


def _base64(text: str) -> None:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
        whole = len(text) // 4 * 4
        stray = next((place for place, character in enumerate(text) if character not in alphabet), whole)
        raise _Mismatch(f"illegal base64 data at input byte {stray}") from None


def _quantity(value: Any) -> None:
    try:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            hooks.decode(quantity.Quantity, value)
        else:
            quantity.Quantity.parse(msgspec.json.encode(value).decode())
    except errors.InvalidValueError as error:
        raise _Mismatch(str(error)) from None


def _time(value: str, *, layout: str) -> None:
    if layout is _MICRO_TIME_LAYOUT and _SECONDS.match(value) and not _MICRO_SECONDS.match(value):
        # Go leaves out no digit of what a layout asks for.
        shown, rest = (msgspec.json.encode(text).decode() for text in (value, value[19:]))
        raise _Mismatch(f'parsing time {shown} as "{layout}": cannot parse {rest} as ".000000"')
    try:
        msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        shown = msgspec.json.encode(value).decode()
        raise _Mismatch(f'parsing time {shown} as "{layout}": cannot parse {shown} as "2006"') from None


def _refuse(value: Any, wanted: model.Type, *, path: str, owner: Owner) -> NoReturn:
    is_integer = isinstance(wanted, model.Scalar) and wanted.name in _LIMITS
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    shown = f"number {value}" if is_integer and is_number else describe(value)
    place = f"struct field {owner.object}.{path}" if owner.object else "value"
    raise _Mismatch(f"json: cannot unmarshal {shown} into Go {place} of type {_type(wanted, owner)}")


def _type(wanted: model.Type, owner: Owner) -> str:
    """The name of a Go type."""
    match wanted:
        case model.Object():
            return f"{_package(wanted)}.{wanted.name}"
        case model.ListOf():
            return "[]" + _type(wanted.element, owner)
        case model.MapOf():
            element = _type(wanted.element, owner)
            key = f"{element.partition('.')[0]}.{owner.go_type}" if owner.go_type else "string"
            return f"map[{key}]{element}"
        case model.Free():
            return "interface {}"
    if wanted.name == "str":
        named = owner.go_type or "string"
        return named if named == "string" or "." in named else f"v1.{named}"
    return {"bytes": "[]uint8", "Quantity": "resource.Quantity", "Time": "v1.Time"}.get(wanted.name, wanted.name)


def _package(wanted: model.Object) -> str:
    return wanted.package.rpartition(".")[2]
