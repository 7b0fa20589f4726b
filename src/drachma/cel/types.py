"""The types of CEL as the checker knows them; built by declarations, compared by checker, estimate, code generation.

A type is a value: two types with the same kind, name and parameters are equal. ``str(type)`` is the spelling of the
checker's messages (``list(int)``, ``any``), ``type.declared_name`` the spelling of messages about a whole
expression (``list(int)``, ``google.protobuf.Any``). Types nested deeper than ``MAX_DEPTH`` are refused: nothing that
a selector can mean needs them, and every walk over a type may recurse because of that limit.
"""

from __future__ import annotations

import enum

import msgspec

from drachma import errors

MAX_DEPTH = 300


class NestingError(errors.CelError):
    """A type would be nested deeper than ``MAX_DEPTH``."""


class Kind(enum.Enum):
    """The general category of a type."""

    ANY = "any"
    BOOL = "bool"
    BYTES = "bytes"
    DOUBLE = "double"
    DURATION = "duration"
    DYN = "dyn"
    ERROR = "error"
    INT = "int"
    LIST = "list"
    MAP = "map"
    NULL = "null"
    OPAQUE = "opaque"
    STRING = "string"
    STRUCT = "struct"
    TIMESTAMP = "timestamp"
    TYPE = "type"
    TYPE_PARAM = "type_param"
    UINT = "uint"


class Type(msgspec.Struct, frozen=True, cache_hash=True):
    """A type; made by the constants and functions of this module rather than directly.

    ``name`` is the run-time name: what ``type(x)`` yields and what an expression may call the type by.
    ``nullable`` marks the wrapper of a primitive, which null may be assigned to. ``open`` tells that a type
    parameter occurs in it.
    """

    kind: Kind
    name: str
    params: tuple[Type, ...] = ()
    nullable: bool = False
    open: bool = False
    depth: int = 1

    def __str__(self) -> str:
        return _spell(self)

    def __repr__(self) -> str:
        return f"Type({_spell(self)})"

    @property
    def declared_name(self) -> str:
        """Spelling with run-time names, used where upstream prints a type outside the checker."""
        return _declared(self)

    @property
    def is_dynamic(self) -> bool:
        """True if values of the type are only known at run time: dyn, or the protobuf any."""
        return self.kind is Kind.DYN or self.kind is Kind.ANY

    @property
    def is_optional(self) -> bool:
        """True if this is ``optional_type(T)``."""
        return self.kind is Kind.OPAQUE and self.name == OPTIONAL_NAME


def _spell(type_: Type) -> str:
    kind = type_.kind
    if kind in _SPELLED:
        return _SPELLED[kind]
    if kind is Kind.TYPE_PARAM:
        return type_.name
    if not type_.params:
        return f"wrapper({type_.name})" if type_.nullable else type_.name
    return f"{type_.name}({', '.join(map(_spell, type_.params))})"


def _declared(type_: Type) -> str:
    if type_.kind is Kind.TYPE_PARAM:
        return f"<{type_.name}>"
    name = f"wrapper({type_.name})" if type_.nullable else type_.name
    if not type_.params:
        return name
    return f"{name}({', '.join(map(_declared, type_.params))})"


_SPELLED = {
    Kind.ANY: "any",
    Kind.DURATION: "duration",
    Kind.ERROR: "!error!",
    Kind.NULL: "null",
    Kind.TIMESTAMP: "timestamp",
}

OPTIONAL_NAME = "optional_type"

ANY = Type(Kind.ANY, "google.protobuf.Any")
BOOL = Type(Kind.BOOL, "bool")
BYTES = Type(Kind.BYTES, "bytes")
DOUBLE = Type(Kind.DOUBLE, "double")
DURATION = Type(Kind.DURATION, "google.protobuf.Duration")
DYN = Type(Kind.DYN, "dyn")
ERROR = Type(Kind.ERROR, "error")
INT = Type(Kind.INT, "int")
NULL = Type(Kind.NULL, "null_type")
STRING = Type(Kind.STRING, "string")
TIMESTAMP = Type(Kind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE = Type(Kind.TYPE, "type")
UINT = Type(Kind.UINT, "uint")


def _nested(kind: Kind, name: str, params: tuple[Type, ...]) -> Type:
    depth = 0
    is_open = False
    for param in params:
        if param.depth > depth:
            depth = param.depth
        is_open = is_open or param.open
    if depth >= MAX_DEPTH:
        raise NestingError(f"type is nested more than {MAX_DEPTH} levels deep")
    return Type(kind, name, params, open=is_open, depth=depth + 1)


def list_of(element: Type) -> Type:
    """``list(element)``."""
    return _nested(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """``map(key, value)``."""
    return _nested(Kind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    """``optional_type(value)``."""
    return _nested(Kind.OPAQUE, OPTIONAL_NAME, (value,))


def type_of(param: Type) -> Type:
    """``type(param)``: the type of an expression that names a type."""
    return _nested(Kind.TYPE, "type", (param,))


def opaque(name: str, *params: Type) -> Type:
    """Return an abstract type without fields, told apart by its name and parameters."""
    return _nested(Kind.OPAQUE, name, params)


def type_param(name: str) -> Type:
    """Return a type parameter of an overload, or a variable of the checker."""
    return Type(Kind.TYPE_PARAM, name, open=True)


def object_type(name: str) -> Type:
    """Return a type with fields; which fields is known to the environment that declares it."""
    return Type(Kind.STRUCT, name)


def nullable(wrapped: Type) -> Type:
    """Return the wrapper of a primitive type: its values, or null."""
    return Type(wrapped.kind, wrapped.name, wrapped.params, nullable=True, depth=wrapped.depth)


LIST = list_of(DYN)
MAP = map_of(DYN, DYN)

CIDR = opaque("net.CIDR")
IP = opaque("net.IP")
NAMED_FORMAT = object_type("kubernetes.NamedFormat")
QUANTITY = object_type("kubernetes.Quantity")
SEMVER = object_type("kubernetes.Semver")
URL = object_type("kubernetes.URL")


def with_params(type_: Type, params: tuple[Type, ...]) -> Type:
    """Return the list, map, type or opaque type with other parameters."""
    return _nested(type_.kind, type_.name, params)
