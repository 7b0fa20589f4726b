"""Messages of Go's decoder for documents whose values have wrong types.

Clients know these messages. They name Go's types: schema objects have the same names, and fields record named string
types. Kinds with complete structs call this module after decoding has failed; other kinds call it to validate types.

Almost all documents are valid, which ``server.schema.typecheck`` finds out quickly. Only the others are walked through.
"""

import base64
import binascii
from datetime import datetime
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from drachma import errors
from drachma.api import hooks
from drachma.api.types import model
from drachma.server.schema import typecheck
from drachma.values import gotimes, quantity, quotation

_SELF_DECODING: Final = frozenset({"Quantity", "Time", "MicroTime", "IntOrString"})
_LIMITS: Final = {"int32": 2**31, "int64": 2**63}


class Owner(NamedTuple):
    """Position of a value: the names of its object and field, and Go's names for types of the field.

    ``go_type`` is a named string type, and ``go_name`` a named list or map.
    """

    object: str
    field: str
    go_type: str = ""
    go_name: str = ""

    @classmethod
    def of(cls, schema: model.Object, field: model.Field) -> "Owner":
        go_type, go_name = (
            f"{_package(schema)}.{name}" if name and "." not in name else name
            for name in (field.go_type, field.go_name)
        )
        return cls(schema.name, field.name, go_type, go_name)


_NO_OWNER: Final = Owner("", "")


class _Mismatch(Exception):  # noqa: N818 - never leaves this module
    """The first value of a wrong type."""


def explain(document: Any, schema: model.Object, *, path: str = "") -> str:
    """Return Go's message about the first value of a wrong type, in the document's order; empty if there is none.

    ``path`` is the path of the document, if it is a part of another one.
    """
    return "" if typecheck.has_types(document, schema) else explain_slowly(document, schema, path=path)


def explain_slowly(document: Any, schema: model.Object, *, path: str = "") -> str:
    """Like explain(), without the quick check for valid documents.

    Go continues after a wrong type. A later value whose type decodes itself and fails is reported first.
    """
    try:
        _check_self_decoding(document, schema, path=path, owner=_NO_OWNER)
        _object(document, schema, path=path, owner=_NO_OWNER)
    except _Mismatch as error:
        return str(error)
    return ""


def explain_alone(value: Any, kind: model.Scalar) -> str:
    """Return the message of a type that decodes itself, which does not know the field of the value."""
    try:
        _scalar(value, kind, path="", owner=_NO_OWNER)
    except _Mismatch as error:
        return str(error)
    return ""


def type_name(kind: model.Type, owner: Owner) -> str:
    """Return the name of the Go type of a field."""
    return _type(kind, owner)


def describe(value: Any) -> str:
    """Return Go's name for the type of a JSON value."""
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
    """Return the path of a field, including the embedded structs that Go's messages name."""
    name = f"{field.go_parent}.{field.name}" if field.go_parent else field.name
    return f"{path}.{name}" if path else name


def _check_self_decoding(value: Any, kind: model.Type, *, path: str, owner: Owner) -> None:
    """Raise the mismatch of the first value whose type decodes itself and fails."""
    match kind:
        case model.Object() if isinstance(value, dict):
            for key, item in value.items():
                field = kind.fields.get(key)
                if field is not None:
                    _check_self_decoding(item, field.type, path=_below(path, field), owner=Owner.of(kind, field))
        case model.MapOf(element=element) if isinstance(value, dict):
            for item in value.values():
                _check_self_decoding(item, element, path=path, owner=owner)
        case model.ListOf(element=element) if isinstance(value, list):
            for item in value:
                _check_self_decoding(item, element, path=path, owner=owner)
        case model.Scalar(name=name) if name in _SELF_DECODING and value is not None:
            _scalar(value, kind, path=path, owner=owner)


def _value(value: Any, kind: model.Type, *, path: str, owner: Owner) -> None:
    match kind:
        case model.Object():
            _object(value, kind, path=path, owner=owner)
        case model.MapOf():
            if not isinstance(value, dict):
                _refuse(value, kind, path=path, owner=owner)
            for item in value.values():
                if item is not None:
                    _value(item, kind.element, path=path, owner=owner)
        case model.ListOf():
            if not isinstance(value, list):
                _refuse(value, kind, path=path, owner=owner)
            for item in value:
                if item is not None:
                    _value(item, kind.element, path=path, owner=owner)
        case model.Scalar():
            _scalar(value, kind, path=path, owner=owner)
        case model.Free():
            pass


def _scalar(value: Any, kind: model.Scalar, *, path: str, owner: Owner) -> None:
    match kind.name:
        case "str":
            if not isinstance(value, str):
                _refuse(value, kind, path=path, owner=owner)
        case "bool":
            if not isinstance(value, bool):
                _refuse(value, kind, path=path, owner=owner)
        case "int32" | "int64":
            limit = _LIMITS[kind.name]
            if not isinstance(value, int) or isinstance(value, bool) or not -limit <= value < limit:
                _refuse(value, kind, path=path, owner=owner)
        case "float64":
            if not isinstance(value, int | float) or isinstance(value, bool):
                _refuse(value, kind, path=path, owner=owner)
        case "bytes":
            if not isinstance(value, str):
                _refuse(value, kind, path=path, owner=owner)
            _base64(value)
        case "Quantity":
            _quantity(value)
        case "Time":
            if not isinstance(value, str):
                _refuse(value, model.STRING, path=path, owner=owner)
            _time(value, layout=gotimes.TIME)
        case "MicroTime":
            if not isinstance(value, str):
                _refuse(value, model.STRING, path=path, owner=owner)
            _time(value, layout=gotimes.MICRO_TIME)
        case "IntOrString":
            if not isinstance(value, str | int) or isinstance(value, bool):
                _refuse(value, model.INT32, path=path, owner=owner)


def _base64(text: str) -> None:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
        complete = len(text) // 4 * 4
        stray = next((place for place, character in enumerate(text) if character not in alphabet), complete)
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
    problem = gotimes.problem(value, layout)
    if problem:
        raise _Mismatch(problem)
    try:
        msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        # Go accepts the time, such as one in the year 0; it cannot be stored here.
        quoted = quotation.quote(value)
        raise _Mismatch(f'parsing time {quoted} as "{layout}": cannot parse {quoted} as "2006"') from None


def _refuse(value: Any, kind: model.Type, *, path: str, owner: Owner) -> NoReturn:
    is_integer = isinstance(kind, model.Scalar) and kind.name in _LIMITS
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    value_type = f"number {value}" if is_integer and is_number else describe(value)
    place = f"struct field {owner.object}.{path}" if owner.object else "value"
    raise _Mismatch(f"json: cannot unmarshal {value_type} into Go {place} of type {_type(kind, owner)}")


def _type(kind: model.Type, owner: Owner) -> str:
    """Return the name of a Go type."""
    match kind:
        case model.Object():
            return f"{_package(kind)}.{kind.name}"
        case model.ListOf() | model.MapOf() if owner.go_name:
            return owner.go_name
        case model.ListOf():
            return "[]" + _type(kind.element, owner)
        case model.MapOf():
            element = _type(kind.element, owner)
            return f"map[{owner.go_type or 'string'}]{element}"
        case model.Free():
            return "interface {}"
    if kind.name == "str":
        return owner.go_type or "string"
    return {"bytes": "[]uint8", "Quantity": "resource.Quantity", "Time": "v1.Time"}.get(kind.name, kind.name)


def _package(kind: model.Object) -> str:
    return kind.package.rpartition(".")[2]
