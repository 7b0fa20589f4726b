"""Declared functions: name, overloads, and the table form in which the libraries are written.

A table has one function a paragraph: its name on a line of its own, then one overload a line, indented::

    size
        size_string (string) -> int
        string_size string.() -> int

The first word is upstream's overload id, by which the runtime keeps its implementations. ``string.()`` is called on
a target. Types are spelled as in the checker's messages; a single capital letter is a type parameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from drachma.cel import types


class Overload(msgspec.Struct, frozen=True):
    """One signature; for a member overload the first parameter is the target."""

    id: str
    params: tuple[types.Type, ...]
    result: types.Type
    member: bool
    type_params: tuple[str, ...] = ()


class Function(msgspec.Struct, frozen=True):
    """A name with its overloads, in the order in which the checker tries them."""

    name: str
    overloads: tuple[Overload, ...]

    def called(self, *, member: bool) -> tuple[Overload, ...]:
        """Return the overloads for one way of calling."""
        return tuple(overload for overload in self.overloads if overload.member is member)


def merged(tables: Iterable[Iterable[Function]]) -> Mapping[str, Function]:
    """Return all functions by name; where libraries share a name, the overloads of the earlier library come first."""
    result: dict[str, Function] = {}
    for table_ in tables:
        for function in table_:
            existing = result.get(function.name)
            if existing is not None:
                ids = {overload.id for overload in existing.overloads}
                added = tuple(overload for overload in function.overloads if overload.id not in ids)
                function = Function(function.name, existing.overloads + added)
            result[function.name] = function
    return result


def table(text: str) -> tuple[Function, ...]:
    """Return the functions of a table."""
    result: list[tuple[str, list[Overload]]] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        if line[0].isspace():
            result[-1][1].append(_overload(line.strip()))
        else:
            result.append((line, []))
    return tuple(Function(name, tuple(overloads)) for name, overloads in result)


_SIGNATURE = re.compile(r"(?P<id>\S+) (?:(?P<target>.+?)\.)?\((?P<params>.*)\) -> (?P<result>.+)")


def _overload(line: str) -> Overload:
    match = _SIGNATURE.fullmatch(line)
    if match is None:
        raise AssertionError(f"not an overload: {line}")
    member = match["target"] is not None
    params = _types(match["params"])
    if member:
        params.insert(0, parse_type(match["target"]))
    result = parse_type(match["result"])
    names: dict[str, None] = {}
    for type_ in [result, *params]:
        _collect(type_, names)
    return Overload(match["id"], tuple(params), result, member, tuple(names))


def _collect(type_: types.Type, names: dict[str, None]) -> None:
    if type_.kind is types.Kind.TYPE_PARAM:
        names[type_.name] = None
    for param in type_.params:
        _collect(param, names)


_SIMPLE = {
    str(type_): type_
    for type_ in (
        types.ANY,
        types.BOOL,
        types.BYTES,
        types.CIDR,
        types.DOUBLE,
        types.DURATION,
        types.DYN,
        types.INT,
        types.IP,
        types.NULL,
        types.STRING,
        types.TIMESTAMP,
        types.TYPE,
        types.UINT,
    )
}


def parse_type(text: str) -> types.Type:
    """Return a type by its spelling; a dotted name that is no other type is an object type."""
    name, bracket, parameters = text.partition("(")
    if not bracket:
        if name in _SIMPLE:
            return _SIMPLE[name]
        return types.type_param(name) if len(name) == 1 else types.object_type(name)
    params = _types(parameters[:-1])
    match name:
        case "list":
            return types.list_of(*params)
        case "map":
            return types.map_of(*params)
        case "optional_type":
            return types.optional_of(*params)
        case "type":
            return types.type_of(*params)
        case _:
            return types.opaque(name, *params)


def _types(text: str) -> list[types.Type]:
    """Types separated by commas that stand in no bracket."""
    result: list[types.Type] = []
    depth = start = 0
    for at, character in enumerate(text + ","):
        if character == "," and depth == 0:
            if at > start:
                result.append(parse_type(text[start:at].strip()))
            start = at + 1
        depth += (character == "(") - (character == ")")
    return result
