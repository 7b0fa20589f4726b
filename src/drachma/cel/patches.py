"""Literals of mutations: ``Object{spec: Object.spec{...}}`` and ``JSONPatch{op: "add", path: ..., value: ...}``.

Types of objects are known by their names only, which are those of the fields that they are in, and have fields of any
name. Expressions of mutations can make such values, and so can no others. :func:`to_json` takes them out of CEL.
"""

from __future__ import annotations

from typing import Any, Final

from drachma import errors
from drachma.cel import declarations, types
from drachma.cel.environment import Message
from drachma.cel.runtime import faults, kinds, values
from drachma.cel.runtime.patches import JSONPatchValue, ObjectValue
from drachma.values import quotation

OBJECT: Final = types.object_type("Object")
JSON_PATCH: Final = types.object_type("JSONPatch")
JSON_PATCH_LIST: Final = types.list_of(JSON_PATCH)
RESULTS: Final = frozenset((OBJECT, JSON_PATCH_LIST))
"""Result types of mutation expressions."""

FUNCTIONS: Final = declarations.table("""\
jsonpatch.escapeKey
    string_jsonpatch_escapeKey_string (string) -> string
""")

_PATCH_FIELDS: Final = {"op": types.STRING, "path": types.STRING, "from": types.STRING, "value": types.DYN}
_TEXTS: Final = ("op", "path", "from")


def find(name: str) -> Message | None:
    """Return the type of a literal, if it is one of these."""
    if name == JSON_PATCH.name:
        return Message(name, JSON_PATCH, name, _PATCH_FIELDS, make=_make_patch)
    if name == OBJECT.name or name.startswith(f"{OBJECT.name}."):
        type_ = types.object_type(name)
        return Message(name, type_, name, {}, any_field=types.DYN, make=lambda fields: ObjectValue(name, fields))
    return None


def _make_patch(fields: dict[str, Any]) -> JSONPatchValue:
    for field in _TEXTS:
        if field in fields and fields[field].__class__ is not str:
            kind = kinds.name(fields[field])
            raise faults.Fault(f"unexpected type {kind} for JSONPatchType '{field}' field")
    return JSONPatchValue(fields)


class UnfitError(errors.CelError):
    """A value that JSON has no form for, or that is not what its place says."""


def mismatches(value: Any, place: str = OBJECT.name) -> list[str]:
    """Return the wrong types of objects inside an object: each must be named after its place."""
    problems: list[str] = []
    todo: list[tuple[Any, str]] = [(value, place)]
    while todo:
        part, expected_name = todo.pop()
        kind = part.__class__
        if kind is ObjectValue:
            if part.type_name != expected_name:
                actual_text, expected_text = quotation.quote(part.type_name), quotation.quote(expected_name)
                detail = "which matches field name path from root Object type"
                problems.append(f"unexpected type name {actual_text}, expected {expected_text}, {detail}")
            todo.extend((each, f"{expected_name}.{name}") for name, each in part.items())
        elif kind in kinds.LISTS:
            todo.extend((each, expected_name) for each in part)
        elif kind in kinds.MAPS:
            todo.extend((each, expected_name) for each in part.values())
    return problems


def to_json(value: Any) -> Any:
    """Return the JSON form of a value. Raises UnfitError where it has none."""
    kind = value.__class__
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is values.UInt:
        return int(value)
    if kind in kinds.LISTS:
        return [to_json(each) for each in value]
    if kind in kinds.MAPS:
        result = {}
        for key, each in value.items():
            name = values.decode_key(key)
            if name.__class__ is not str:
                raise UnfitError(f"map key {name} is of type {kinds.name(name)}, not string")
            result[name] = to_json(each)
        return result
    raise UnfitError(f"a value of type {kinds.name(value)} has no form in JSON")
