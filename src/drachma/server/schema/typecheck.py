"""Whether a document fits its schema, decided by msgspec against structs made from the schema.

Almost all documents are good, and this is the quick way to know. It does not say what is wrong with the others, and may
be wrong about a few of them: ``server.schema.decodeerrors`` and ``server.schema.unknownfields`` look at those.
"""

import base64
import re
from datetime import datetime
from typing import Any, ClassVar, Final, ForwardRef, Union

import msgspec

from drachma.api import hooks, struct
from drachma.server.schema import model
from drachma.values import quantity


class _Base64:
    """Stands for text that must be base64."""


class _MicroTime:
    """Stands for a time with all six digits of its fraction of a second."""


_has_micros: Final = re.compile(r"[^.]{19}\.\d{6}(?!\d)").match
_SCALARS: Final[dict[str, Any]] = {
    "str": str,
    "bool": bool,
    "int32": struct.Int32,
    "int64": struct.Int64,
    "float64": float,
    "bytes": _Base64,
    "Quantity": quantity.Quantity,
    "Time": datetime,
    "MicroTime": _MicroTime,
    "IntOrString": str | int,
}


def in_types(document: Any, schema: model.Object) -> bool:
    """Whether all values have the types of the schema; fields that it does not have may be anything."""
    return _fits(document, schema.plan(_Loose).struct)


def in_fields(document: Any, schema: model.Object) -> bool:
    """Whether there are no fields but those of the schema as well."""
    return _fits(document, schema.plan(_Strict).struct)


def _fits(document: Any, wanted: type[msgspec.Struct]) -> bool:
    try:
        msgspec.convert(document, wanted, dec_hook=_decode)
    except msgspec.ValidationError:
        return False
    return True


def _decode(wanted: type, value: Any) -> Any:
    if wanted is _Base64:
        return base64.b64decode(value, validate=True)
    if wanted is _MicroTime:
        if not isinstance(value, str) or not _has_micros(value):
            raise ValueError(f"not a time to the microsecond: {value!r}")
        return msgspec.convert(value, datetime)
    return hooks.decode(wanted, value)


class _Loose:
    """The struct for objects of a type: any field may be absent or null, and fields that it does not have are skipped.

    Structs of other types are named in it and set as attributes of it, where msgspec looks for names once it needs
    them: a type may refer to itself.
    """

    refuses_others: ClassVar = False

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
            forbid_unknown_fields=self.refuses_others and not schema.is_open,
            gc=False,
        )
        for position, part in enumerate(self._parts):
            setattr(self.struct, _name(position), part.plan(type(self)).struct)

    def _kind(self, wanted: model.Type) -> Any:
        match wanted:
            case model.Object():
                self._parts.append(wanted)
                return ForwardRef(_name(len(self._parts) - 1))
            case model.MapOf():
                return dict[str, _or_null(self._kind(wanted.element))]  # type: ignore[misc]
            case model.ListOf():
                return list[_or_null(self._kind(wanted.element))]  # type: ignore[misc]
            case model.Scalar():
                return _SCALARS[wanted.name]
            case model.Free():
                return Any


class _Strict(_Loose):
    """The same, but with no other fields."""

    refuses_others: ClassVar = True


def _or_null(kind: Any) -> Any:
    return Union[kind, None]  # noqa: UP007 - a name that stands for a type has no other way to say it


def _name(position: int) -> str:
    return f"Part{position}"
