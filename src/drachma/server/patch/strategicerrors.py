"""What upstream says about the outcome of a strategic merge patch, which it does not decode from JSON.

It copies the merged document field by field into the typed object, with words of its own for values of the wrong type,
and names unknown fields without the keys of the maps that they are in. Called once decoding has failed, and for
fields that a kind does not have.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from drachma.server.schema import decodeerrors, model, unknownfields
from drachma.values import quotation

_KINDS: Final = {"str": "string", "bool": "bool", "int32": "int32", "int64": "int64"}


class _Mismatch(Exception):  # noqa: N818 - never leaves this module
    """The first value that cannot be copied."""


def explain(document: Mapping[str, Any], schema: model.Object) -> str:
    """Upstream's message about the first value of a wrong type, in the order of the fields; empty if there is none."""
    try:
        _object(document, schema)
    except _Mismatch as error:
        return str(error)
    return ""


def unknown_fields(document: Mapping[str, Any], schema: model.Object) -> list[str]:
    """The problems of a document in upstream's words, those of inner objects first."""
    found: list[str] = []
    for path in _unknown(document, schema, path=""):
        found.append(f"unknown field {quotation.quote(path)}")
        if len(found) == unknownfields.LIMIT:
            break
    return found


def _object(value: Any, schema: model.Object) -> None:
    if not isinstance(value, dict):
        raise _Mismatch(f"cannot restore struct from: {_kind(value)}")
    for name, field in schema.fields.items():
        item = value.get(name)
        if item is not None:
            _value(item, field.type, owner=decodeerrors.Owner.of(schema, field))


def _value(value: Any, wanted: model.Type, *, owner: decodeerrors.Owner) -> None:
    match wanted:
        case model.Object():
            _object(value, wanted)
        case model.MapOf(element=element):
            if not isinstance(value, dict):
                raise _Mismatch(f"cannot restore map from {_kind(value)}")
            _items(value.values(), element, owner=owner)
        case model.ListOf(element=element):
            if not isinstance(value, list):
                raise _Mismatch(f"cannot restore slice from {_kind(value)}")
            _items(value, element, owner=owner)
        case model.Scalar(name=name) if name in _KINDS:
            _scalar(value, wanted, owner=owner)
        case model.BYTES:
            _bytes(value)
        case model.Scalar():
            # Types that read themselves from JSON do so here too.
            problem = decodeerrors.explain_alone(value, wanted)
            if problem:
                raise _Mismatch(problem)


def _items(values: Any, element: model.Type, *, owner: decodeerrors.Owner) -> None:
    for item in values:
        if item is not None:
            _value(item, element, owner=owner)


def _scalar(value: Any, wanted: model.Scalar, *, owner: decodeerrors.Owner) -> None:
    kind, found = _KINDS[wanted.name], _kind(value)
    is_integer = kind in ("int32", "int64")
    if found == kind or (is_integer and found in ("int64", "float64") and value == int(value)):
        return
    # Go can turn a whole number into a text, and one number into another; upstream does not let it.
    if (kind == "string" and found == "int64") or (is_integer and found == "float64"):
        raise _Mismatch(f"cannot convert {found} to {decodeerrors.type_name(wanted, owner)}")
    raise _Mismatch(f"unrecognized type: {kind}")


def _bytes(value: Any) -> None:
    if not isinstance(value, str):
        raise _Mismatch(f"cannot restore slice from {_kind(value)}")
    problem = decodeerrors.explain_alone(value, model.BYTES)
    if problem:
        raise _Mismatch(f"error decoding from json: {problem}")


def _kind(value: Any) -> str:
    """Go's kind of a decoded JSON value."""
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


def _unknown(value: Any, schema: model.Object, *, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    for name, field in schema.fields.items():
        if name in value:
            yield from _unknown_in(value[name], field.type, path=f"{path}.{name}" if path else name)
    for key in value:
        if key not in schema.fields:
            yield f"{path}.{key}" if path else key


def _unknown_in(value: Any, wanted: model.Type, *, path: str) -> Iterator[str]:
    match wanted:
        case model.Object():
            yield from _unknown(value, wanted, path=path)
        case model.ListOf(element=element) if isinstance(value, list):
            for index, item in enumerate(value):
                yield from _unknown_in(item, element, path=f"{path}[{index}]")
        case model.MapOf(element=element) if isinstance(value, dict):
            for item in value.values():
                yield from _unknown_in(item, element, path=path)
