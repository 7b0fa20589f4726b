"""Comparison of a document with its Python type: unknown fields, nulls and values of a wrong type.

The codec calls it for strict decoding and to explain a failed decode, because msgspec stops at the first problem and
does not name map keys.
"""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from drachma.api import hooks, meta, struct


class Mismatch(NamedTuple):
    """A value that cannot be decoded: its path, the expected type, and a description."""

    path: str
    expected_type: str
    value: str

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected_type}, found {self.value}"


class Examination(NamedTuple):
    """A document without its nulls, and its problems; paths are in Kubernetes' notation."""

    document: Any
    unknown: tuple[str, ...]
    mismatches: tuple[Mismatch, ...]


def examine(document: Any, model: type, *, allowed_names: frozenset[str] = frozenset()) -> Examination:
    """Compare a document with its type; ``allowed_names`` are additional fields at its top."""
    examiner = _Examiner()
    cleaned = examiner.visit(document, _type_info(model), path="", extra=allowed_names)
    return Examination(cleaned, tuple(examiner.unknown), tuple(examiner.mismatches))


@functools.cache
def _type_info(model: type) -> inspect.Type:
    return inspect.type_info(model)


_ZEROS: Mapping[type[inspect.Type], Any] = {
    inspect.StrType: "",
    inspect.BoolType: False,
    inspect.IntType: 0,
    inspect.StructType: {},
    inspect.DictType: {},
    inspect.VarTupleType: [],
}


class _Examiner:
    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.mismatches: list[Mismatch] = []

    def visit(self, value: Any, info: inspect.Type, *, path: str, extra: frozenset[str] = frozenset()) -> Any:
        if isinstance(info, inspect.UnionType):
            info = next(kind for kind in info.types if not isinstance(kind, inspect.NoneType))
        if isinstance(info, inspect.AnyType):
            return value
        if isinstance(info, inspect.StructType):
            if not isinstance(value, dict):
                return self._refuse(path, "an object", value)
            return self._visit_struct(value, info, path=path, extra=extra)
        if isinstance(info, inspect.DictType):
            if not isinstance(value, dict):
                return self._refuse(path, "an object", value)
            return {key: self._visit_item(item, info.value_type, path=f"{path}[{key}]") for key, item in value.items()}
        if isinstance(info, inspect.VarTupleType):
            if not isinstance(value, list | tuple):
                return self._refuse(path, "a list", value)
            return [self._visit_item(item, info.item_type, path=f"{path}[{index}]") for index, item in enumerate(value)]
        return self._visit_leaf(value, info, path=path)

    def _visit_item(self, value: Any, info: inspect.Type, *, path: str) -> Any:
        """Visit an item of a map or list. Kubernetes reads a null item as the zero value of its type."""
        if value is None and isinstance(info, inspect.CustomType):
            return "0"
        return self.visit(_ZEROS.get(type(info)) if value is None else value, info, path=path)

    def _visit_struct(
        self, value: dict[str, Any], info: inspect.StructType, *, path: str, extra: frozenset[str]
    ) -> dict[str, Any]:
        fields = {field.encode_name: field.type for field in info.fields}
        cleaned = {}
        for key, item in value.items():
            where = f"{path}.{key}" if path else str(key)
            if key not in fields:
                if key not in extra:
                    self.unknown.append(where)
                continue
            # Kubernetes reads null as absent, except inside opaque values.
            if item is not None or isinstance(fields[key], inspect.AnyType):
                cleaned[key] = self.visit(item, fields[key], path=where)
        return cleaned

    def _visit_leaf(self, value: Any, info: inspect.Type, *, path: str) -> Any:
        if isinstance(info, inspect.CustomType):
            expected_type, target = info.cls.__name__.lower(), info.cls
        else:
            expected_type, target = _leaf(info)
        try:
            msgspec.convert(value, target, dec_hook=hooks.decode)
        except msgspec.ValidationError as error:
            if isinstance(info, inspect.CustomType) and isinstance(value, str):
                self.mismatches.append(Mismatch(path, expected_type, f"{value!r} ({_plain(error)})"))
            else:
                self._refuse(path, expected_type, value)
        return value

    def _refuse(self, path: str, expected_type: str, value: Any) -> Any:
        self.mismatches.append(Mismatch(path or "the document", expected_type, describe(value)))
        return value


def describe(value: Any) -> str:
    """Return a value as it was written, shortened, with the name of its JSON type."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool):
        return f"boolean {str(value).lower()}"
    text = repr(value) if not isinstance(value, str) else msgspec.json.encode(value).decode()
    short_text = text if len(text) <= 64 else text[:61] + "..."
    return f"string {short_text}" if isinstance(value, str) else f"number {short_text}"


def _leaf(info: inspect.Type) -> tuple[str, Any]:
    match info:
        case inspect.IntType(le=limit):
            return ("a 32-bit integer", struct.Int32) if limit == 2**31 - 1 else ("a 64-bit integer", struct.Int64)
        case inspect.BoolType():
            return "a boolean", bool
        case inspect.FloatType():
            return "a number", float
        case inspect.DateTimeType():
            return "an RFC 3339 time", meta.Time
        case _:
            return "a string", str


def _plain(error: msgspec.ValidationError) -> str:
    return str(error).partition(" - at `")[0]
