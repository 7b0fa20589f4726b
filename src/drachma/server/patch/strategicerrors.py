"""Upstream's messages about the result of a strategic merge patch, which it does not decode from JSON.

It copies the merged document field by field into the typed object. Its messages about values of the wrong type differ
from those of the decoder, and paths of unknown fields lack the keys of maps.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from drachma.api.types import model
from drachma.server.schema import decodeerrors, unknownfields
from drachma.values import quotation

_KINDS: Final = {"str": "string", "bool": "bool", "int32": "int32", "int64": "int64"}


class _Mismatch(Exception):  # noqa: N818 - never leaves this module
    """The first value that cannot be copied."""


def explain(document: Mapping[str, Any], schema: model.Object) -> str:
    """Return upstream's message about the first value of a wrong type, in field order; empty if there is none."""
    try:
        _object(document, schema)
    except _Mismatch as error:
        return str(error)
    return ""


def unknown_fields(document: Mapping[str, Any], schema: model.Object) -> list[str]:
    """Return upstream's messages about unknown fields, those of inner objects first."""
    messages: list[str] = []
    for path in _find_unknown(document, schema, path=""):
        messages.append(f"unknown field {quotation.quote(path)}")
        if len(messages) == unknownfields.LIMIT:
            break
    return messages


def _object(value: Any, schema: model.Object) -> None:
    if not isinstance(value, dict):
        raise _Mismatch(f"cannot restore struct from: {_kind(value)}")
    for name, field in schema.fields.items():
        item = value.get(name)
        if item is not None:
            _value(item, field.type, owner=decodeerrors.Owner.of(schema, field))


def _value(value: Any, kind: model.Type, *, owner: decodeerrors.Owner) -> None:
    match kind:
        case model.Object():
            _object(value, kind)
        case model.MapOf(element=element):
            if not isinstance(value, dict):
                raise _Mismatch(f"cannot restore map from {_kind(value)}")
            _items(value.values(), element, owner=owner)
        case model.ListOf(element=element):
            if not isinstance(value, list):
                raise _Mismatch(f"cannot restore slice from {_kind(value)}")
            _items(value, element, owner=owner)
        case model.Scalar(name=name) if name in _KINDS:
            _scalar(value, kind, owner=owner)
        case model.BYTES:
            _bytes(value)
        case model.Scalar():
            # Types with their own JSON decoding use it here, too.
            problem = decodeerrors.explain_alone(value, kind)
            if problem:
                raise _Mismatch(problem)


def _items(values: Any, element: model.Type, *, owner: decodeerrors.Owner) -> None:
    for item in values:
        if item is not None:
            _value(item, element, owner=owner)


def _scalar(value: Any, schema: model.Scalar, *, owner: decodeerrors.Owner) -> None:
    kind, actual = _KINDS[schema.name], _kind(value)
    is_integer = kind in ("int32", "int64")
    if actual == kind or (is_integer and actual in ("int64", "float64") and value == int(value)):
        return
    # Go could convert a whole number to a string, and between numbers; upstream refuses that.
    if (kind == "string" and actual == "int64") or (is_integer and actual == "float64"):
        raise _Mismatch(f"cannot convert {actual} to {decodeerrors.type_name(schema, owner)}")
    raise _Mismatch(f"unrecognized type: {kind}")


def _bytes(value: Any) -> None:
    if not isinstance(value, str):
        raise _Mismatch(f"cannot restore slice from {_kind(value)}")
    problem = decodeerrors.explain_alone(value, model.BYTES)
    if problem:
        raise _Mismatch(f"error decoding from json: {problem}")


def _kind(value: Any) -> str:
    """Return Go's kind of a decoded JSON value."""
    match value:
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
        case dict():
            return "map"
    return "slice"


def _find_unknown(value: Any, schema: model.Object, *, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    for name, field in schema.fields.items():
        if name in value:
            yield from _find_unknown_in(value[name], field.type, path=f"{path}.{name}" if path else name)
    for key in value:
        if key not in schema.fields:
            yield f"{path}.{key}" if path else key


def _find_unknown_in(value: Any, kind: model.Type, *, path: str) -> Iterator[str]:
    match kind:
        case model.Object():
            yield from _find_unknown(value, kind, path=path)
        case model.ListOf(element=element) if isinstance(value, list):
            for index, item in enumerate(value):
                yield from _find_unknown_in(item, element, path=f"{path}[{index}]")
        case model.MapOf(element=element) if isinstance(value, dict):
            for item in value.values():
                yield from _find_unknown_in(item, element, path=path)
