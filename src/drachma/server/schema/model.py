"""The types of API documents as merging sees them: scalars, free JSON, maps, lists and objects with named fields.

"Granular" means that owners share a container and own its items; an "atomic" container has one owner and is replaced
as a whole. A list is granular only if its items have an identity: by key fields, or because it is a set.

Types are values that nobody changes once they are made. An object may have fields of its own type, so whoever walks
through types, and not through a document, must expect to come back; :meth:`Object.plan` does.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import msgspec


class Plan(Protocol):
    """What a module works out about an object type, to walk through documents quickly. Begins empty."""

    def complete(self, schema: "Object") -> None:
        """Works it out. Plans of other types can be asked for and kept here, but may not be complete yet."""


_PlanT = TypeVar("_PlanT", bound=Plan)


class Scalar(msgspec.Struct, frozen=True):
    """A single value. ``name`` is our word for it, ``json`` its JSON type, ``format`` OpenAPI's.

    ``json`` is empty where several JSON types are allowed (quantities, times, int-or-string).
    """

    name: str
    json: str
    format: str = ""


class Free(msgspec.Struct, frozen=True):
    """JSON of any shape: replaced as a whole where ``atomic``, otherwise merged map by map."""

    atomic: bool


class MapOf(msgspec.Struct, frozen=True):
    """A map from names that users choose to values of one type."""

    element: "Type"
    atomic: bool = False


class ListOf(msgspec.Struct, frozen=True):
    """A list: atomic if ``keys`` is None, a set if it is empty, otherwise items are identified by those fields."""

    element: "Type"
    keys: tuple[str, ...] | None = None


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A named part of an object.

    ``filled``: upstream's struct is not a pointer, so the field is written even where it is empty. ``nulled``: so is
    this list or time, as null. ``optional``: a scalar that is a pointer upstream, so that zero is something else than
    nothing. ``default`` only matters for key fields of lists. ``merge_key``, ``merges``, ``replaces`` and
    ``retains_keys`` are the strategic merge patch strategy, which for historical reasons is not always what server-side
    apply does.
    ``go_type`` is Go's name for the type of a text, or of the keys of a map; ``go_parent`` the struct that Go has the
    field from, where that stands inside of the object's; messages show both.
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
    go_parent: str = ""
    description: str = ""


class Numbered(NamedTuple):
    """A field of a protobuf message by its JSON name, or a message inside of it that JSON knows nothing of."""

    name: str
    is_pointer: bool = False
    embedded: "Message | None" = None


Message: TypeAlias = Mapping[int, Numbered]
"""Field numbers of a type."""

ZEROS: Mapping[str, Any] = {
    "str": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "float64": 0.0,
    "bytes": "",
    "Quantity": "0",
}
"""What Go has where a scalar is missing, and writes unless it leaves it out; times are null."""


FindUnknown: TypeAlias = Callable[[Mapping[str, Any]], Sequence[str]]
"""Finds the paths of fields in a document that a type does not have."""


class Object(msgspec.Struct, frozen=True, eq=False, dict=True):
    """An object with named fields. ``package`` and ``name`` make its name in OpenAPI documents.

    There are no other fields, unless it ``is_open``. Where the type comes from a schema that users have ``written``,
    that is what OpenAPI documents show, and ``find_unknown`` goes by it.
    """

    package: str
    name: str
    fields: Mapping[str, Field]
    atomic: bool = False
    message: Message = {}
    description: str = ""
    is_open: bool = False
    written: Mapping[str, Any] | None = None
    find_unknown: FindUnknown | None = None

    @property
    def definition(self) -> str:
        return f"{self.package}.{self.name}"

    def plan(self, kind: type[_PlanT]) -> _PlanT:
        """The plan of one kind for this type: made once, and kept as long as the type is."""
        plans = self._plans
        if kind not in plans:
            # Known before it is complete, because the type may refer to itself.
            plans[kind] = kind()
            plans[kind].complete(self)
        return plans[kind]  # type: ignore[no-any-return]

    @functools.cached_property
    def _plans(self) -> dict[type[Any], Any]:
        return {}

    def replaced(self, fields: Mapping[str, Field]) -> Self:
        """A type of the same name with other fields."""
        return msgspec.structs.replace(self, fields=fields)

    def __repr__(self) -> str:
        """Just its name: a type that refers to itself has no end."""
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

PLAIN: Mapping[str, Scalar | Free] = {
    **{
        each.name: each
        for each in (STRING, BOOLEAN, INT32, INT64, FLOAT64, TIME, MICRO_TIME, QUANTITY, INT_OR_STRING, BYTES)
    },
    "RawExtension": RAW,
    "FieldsV1": ANY,
}
"""Types without parts, by the names that tables use."""


class _Empty:
    """What upstream writes for a new object of a type."""

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
    """What upstream writes for a new object of the type: parts that are always written, required fields as zero.

    The document is shared; whoever changes it copies it first.
    """
    return schema.plan(_Empty).document
