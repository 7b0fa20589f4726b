"""Quick check of a document against its schema: msgspec converts it to structs made from the schema.

Almost all documents pass. The check does not say what is wrong with the others and may refuse a few valid ones, so
callers examine those with ``server.schema.decodeerrors`` or ``server.schema.unknownfields``.
"""

import base64
import re
from typing import Any, ClassVar, Final, ForwardRef, Union

import msgspec

from drachma.api import hooks, meta, struct
from drachma.api.types import model
from drachma.values import quantity


class _Base64:
    """Type of base64 texts."""


class _MicroTime:
    """Type of times with six digits of a fraction of a second."""


_has_micros: Final = re.compile(r"[^.]{19}\.\d{6}(?!\d)").match
_SCALARS: Final[dict[str, Any]] = {
    "str": str,
    "bool": bool,
    "int32": struct.Int32,
    "int64": struct.Int64,
    "float64": float,
    "bytes": _Base64,
    "Quantity": quantity.Quantity,
    "Time": meta.Time,
    "MicroTime": _MicroTime,
    "IntOrString": str | int,
}


def has_types(document: Any, schema: model.Object) -> bool:
    """Return True if all values have the types of the schema; unknown fields may have any value."""
    return _fits(document, schema.plan(_Loose).struct)


def has_only_fields(document: Any, schema: model.Object) -> bool:
    """Return True if all values have the types of the schema and there are no unknown fields."""
    return _fits(document, schema.plan(_Strict).struct)


def _fits(document: Any, struct_type: type[msgspec.Struct]) -> bool:
    try:
        msgspec.convert(document, struct_type, dec_hook=_decode)
    except msgspec.ValidationError:
        return False
    return True


def _decode(expected_type: type, value: Any) -> Any:
    if expected_type is _Base64:
        return base64.b64decode(value, validate=True)
    if expected_type is _MicroTime:
        if not isinstance(value, str) or not _has_micros(value):
            raise ValueError(f"not a time to the microsecond: {value!r}")
        return msgspec.convert(value, meta.Time)
    return hooks.decode(expected_type, value)


class _Loose:
    """Struct for objects of a type: any field may be absent or null, and unknown fields are skipped.

    A type may refer to itself. So structs of other types are forward references, which msgspec resolves later from the
    attributes of the struct.
    """

    refuses_unknown: ClassVar = False

    def __init__(self) -> None:
        self.struct: type[msgspec.Struct] = msgspec.Struct
        self._parts: list[model.Object] = []

    def complete(self, schema: model.Object) -> None:
        names = {f"field_{position}": name for position, name in enumerate(schema.fields)}
        fields = [(alias, _or_null(self._kind(schema.fields[name].type)), None) for alias, name in names.items()]
        self.struct = msgspec.defstruct(
            schema.name or "Part",
            fields,
            rename=names,
            forbid_unknown_fields=self.refuses_unknown and not schema.is_open,
            gc=False,
        )
        for position, part in enumerate(self._parts):
            setattr(self.struct, _name(position), part.plan(type(self)).struct)

    def _kind(self, kind: model.Type) -> Any:
        match kind:
            case model.Object():
                self._parts.append(kind)
                return ForwardRef(_name(len(self._parts) - 1))
            case model.MapOf():
                return dict[str, _or_null(self._kind(kind.element))]  # type: ignore[misc]
            case model.ListOf():
                return list[_or_null(self._kind(kind.element))]  # type: ignore[misc]
            case model.Scalar():
                return _SCALARS[kind.name]
            case model.Free():
                return Any


class _Strict(_Loose):
    """Struct that refuses unknown fields."""

    refuses_unknown: ClassVar = True


def _or_null(kind: Any) -> Any:
    return Union[kind, None]  # noqa: UP007 - a name that stands for a type has no other way to say it


def _name(position: int) -> str:
    return f"Part{position}"
