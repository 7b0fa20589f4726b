"""Types of API documents: scalars, free JSON, maps, lists and objects with named fields.

Owners share a "granular" container and own its items; an "atomic" container has one owner and is replaced as a whole. A
list is granular only if its items have an identity: by key fields, or because it is a set.

Types are immutable. An object may have fields of its own type, so a walk through types, in contrast to a walk through a
document, must expect cycles; :meth:`Object.plan` does.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import msgspec


class Plan(Protocol):
    """Facts that a module derives from an object type, to walk through documents quickly. A new plan is empty."""

    def complete(self, schema: "Object") -> None:
        """Derive the facts. Plans of other types may be requested and kept, but may be incomplete yet."""


_PlanT = TypeVar("_PlanT", bound=Plan)


class Scalar(msgspec.Struct, frozen=True):
    """A single value. ``json`` is its JSON type, and ``format`` its format in OpenAPI.

    ``json`` is empty if several JSON types are allowed (quantities, times, int-or-string).
    """

    name: str
    json: str
    format: str = ""


class Free(msgspec.Struct, frozen=True):
    """JSON of any shape: replaced as a whole if ``atomic``, otherwise merged map by map."""

    atomic: bool


class MapOf(msgspec.Struct, frozen=True):
    """A map with values of one type."""

    element: "Type"
    atomic: bool = False


class ListOf(msgspec.Struct, frozen=True):
    """A list: atomic if ``keys`` is None, a set if it is empty, otherwise items are identified by those fields."""

    element: "Type"
    keys: tuple[str, ...] | None = None


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A named part of an object.

    ``filled``: Go writes the field even if it is empty. ``nulled``: Go writes the empty value as null.
    ``optional``: the scalar is a pointer in Go, so that zero differs from absent. ``default`` only matters for key
    fields of lists.
    ``merge_key``, ``merges``, ``replaces`` and ``retains_keys`` are the strategy of strategic merge patch, which for
    historical reasons differs from server-side apply in places.
    ``go_type`` is Go's name for the type of a text or of the keys of a map, ``go_name`` that of a list or map with a
    name of its own, and ``go_parent`` the embedded struct that has the field; messages of Go's decoder show them.
    """

    name: str
    type: "Type"
    required: bool = False
    filled: bool = False
    nulled: bool = False
    optional: bool = False
    default: Any = None
    merges: bool = False
    merge_key: str = ""
    replaces: bool = False
    retains_keys: bool = False
    go_type: str = ""
    go_name: str = ""
    go_parent: str = ""
    description: str = ""


class Numbered(NamedTuple):
    """A field of a protobuf message by its JSON name, or an embedded message, which JSON does not show."""

    name: str
    is_pointer: bool = False
    embedded: "Message | None" = None


Message: TypeAlias = Mapping[int, Numbered]
"""Fields of a type by protobuf number."""

ZEROS: Mapping[str, Any] = {
    "str": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "float64": 0.0,
    "bytes": "",
    "Quantity": "0",
}
"""Go's zero values of scalars; times are null."""


FindUnknown: TypeAlias = Callable[[Mapping[str, Any]], Sequence[str]]
"""Returns the paths of unknown fields in a document."""


class Object(msgspec.Struct, frozen=True, eq=False, dict=True):
    """An object with named fields. ``package`` and ``name`` form its name in OpenAPI documents.

    Other fields are unknown, unless the object ``is_open``. ``accepted`` fields are stored as they are, although the
    served schema does not have them. ``written`` is the schema of a custom resource, which OpenAPI documents show;
    ``find_unknown`` then follows the schema.
    """

    package: str
    name: str
    fields: Mapping[str, Field]
    atomic: bool = False
    message: Message = {}
    description: str = ""
    is_open: bool = False
    accepted: tuple[str, ...] = ()
    written: Mapping[str, Any] | None = None
    find_unknown: FindUnknown | None = None

    @property
    def definition(self) -> str:
        return f"{self.package}.{self.name}"

    def plan(self, kind: type[_PlanT]) -> _PlanT:
        """Return the plan of a class for this type, made once."""
        plans = self._plans
        if kind not in plans:
            # Stored before it is complete, because the type may refer to itself.
            plans[kind] = kind()
            plans[kind].complete(self)
        return plans[kind]  # type: ignore[no-any-return]

    @functools.cached_property
    def _plans(self) -> dict[type[Any], Any]:
        return {}

    def replaced(self, fields: Mapping[str, Field]) -> Self:
        """Return a type of the same name with other fields."""
        return msgspec.structs.replace(self, fields=fields)

    def __repr__(self) -> str:
        """Return the name only: a type that refers to itself has no end."""
        return f"Object({self.definition})"


Type: TypeAlias = Scalar | Free | MapOf | ListOf | Object

STRING = Scalar("str", "string")
BOOLEAN = Scalar("bool", "boolean")
INT32 = Scalar("int32", "integer", "int32")
INT64 = Scalar("int64", "integer", "int64")
FLOAT64 = Scalar("float64", "number", "double")
TIME = Scalar("Time", "", "date-time")
MICRO_TIME = Scalar("MicroTime", "", "date-time")
QUANTITY = Scalar("Quantity", "")
INT_OR_STRING = Scalar("IntOrString", "", "int-or-string")
BYTES = Scalar("bytes", "string", "byte")
RAW = Free(atomic=True)
ANY = Free(atomic=False)


class _Empty:
    """The document that upstream writes for an empty object of a type."""

    def __init__(self) -> None:
        self.document: dict[str, Any] = {}

    def complete(self, schema: Object) -> None:
        for name, field in schema.fields.items():
            if field.nulled:
                self.document[name] = None
            elif field.filled and isinstance(field.type, Object):
                self.document[name] = empty(field.type)
            elif field.required:
                self.document[name] = field.default
            elif field.filled and isinstance(field.type, Scalar):
                self.document[name] = ZEROS[field.type.name]


def empty(schema: Object) -> dict[str, Any]:
    """Return the document that upstream writes for an empty object: required fields are zero.

    The document is shared. Callers must copy it before they change it.
    """
    return schema.plan(_Empty).document
