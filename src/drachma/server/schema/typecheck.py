"""Whether a document fits its schema, decided by msgspec against structs made from the schema.

Almost all documents are good, and this is the quick way to know. It does not say what is wrong with the others, and may
be wrong about a few of them: ``server.schema.decodeerrors`` and ``server.schema.unknownfields`` look at those.
"""

import base64
import functools
import re
from datetime import datetime
from typing import Any, Final

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
    "bytes": _Base64,
    "Quantity": quantity.Quantity,
    "Time": datetime,
    "MicroTime": _MicroTime,
    "IntOrString": str | int,
}


def in_types(document: Any, schema: model.Object) -> bool:
    """Whether all values have the types of the schema; fields that it does not have may be anything."""
    return _fits(document, _LOOSE(schema))


def in_fields(document: Any, schema: model.Object) -> bool:
    """Whether there are no fields but those of the schema as well."""
    return _fits(document, _STRICT(schema))


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


class _Mirror:
    """The structs for objects of schemas: any field may be absent or null."""

    def __init__(self, *, takes_others: bool) -> None:
        self._takes_others = takes_others
        self._of = functools.cache(self._make)

    def __call__(self, schema: model.Object) -> type[msgspec.Struct]:
        return self._of(schema)

    def _make(self, schema: model.Object) -> type[msgspec.Struct]:
        names = {f"field_{position}": name for position, name in enumerate(schema.fields)}
        fields = [(alias, self._kind(schema.fields[name].type) | None, None) for alias, name in names.items()]
        return msgspec.defstruct(
            schema.name, fields, rename=names, forbid_unknown_fields=not self._takes_others, gc=False
        )

    def _kind(self, wanted: model.Type) -> Any:
        match wanted:
            case model.Object():
                return self(wanted)
            case model.MapOf():
                return dict[str, self._kind(wanted.element) | None]  # type: ignore[misc]
            case model.ListOf():
                return list[self._kind(wanted.element) | None]  # type: ignore[misc]
            case model.Scalar():
                return _SCALARS[wanted.name]
            case model.Free():
                return Any


_LOOSE: Final = _Mirror(takes_others=True)
_STRICT: Final = _Mirror(takes_others=False)
