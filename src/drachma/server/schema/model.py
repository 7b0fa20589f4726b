"""The types of API documents as merging sees them: scalars, free JSON, maps, lists and objects with named fields.

"Granular" means that owners share a container and own its items; an "atomic" container has one owner and is replaced
as a whole. A list is granular only if its items have an identity: by key fields, or because it is a set.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec


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
    nothing. ``default`` only matters for key fields of lists. ``merge_key``, ``merges`` and ``retains_keys``
    are the strategic merge patch strategy, which for historical reasons is not always what server-side apply does.
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
    retains_keys: bool = False


ZEROS: Mapping[str, Any] = {"str": "", "bool": False, "int32": 0, "int64": 0, "bytes": "", "Quantity": "0"}
"""What Go has where a scalar is missing, and writes unless it leaves it out; times are null."""


class Object(msgspec.Struct, frozen=True, eq=False):
    """An object with named fields and no others. ``package`` and ``name`` make its name in OpenAPI documents."""

    package: str
    name: str
    fields: Mapping[str, Field]
    atomic: bool = False

    @property
    def definition(self) -> str:
        return f"{self.package}.{self.name}"


Type: TypeAlias = Scalar | Free | MapOf | ListOf | Object

STRING = Scalar("str", "string")
BOOLEAN = Scalar("bool", "boolean")
INT32 = Scalar("int32", "integer", "int32")
INT64 = Scalar("int64", "integer", "int64")
TIME = Scalar("Time", "", "date-time")
MICRO_TIME = Scalar("MicroTime", "", "date-time")
QUANTITY = Scalar("Quantity", "")
INT_OR_STRING = Scalar("IntOrString", "", "int-or-string")
BYTES = Scalar("bytes", "string", "byte")
RAW = Free(atomic=True)
ANY = Free(atomic=False)

PLAIN: Mapping[str, Scalar | Free] = {
    **{each.name: each for each in (STRING, BOOLEAN, INT32, INT64, TIME, MICRO_TIME, QUANTITY, INT_OR_STRING, BYTES)},
    "RawExtension": RAW,
    "FieldsV1": ANY,
}
"""Types without parts, by the names that tables use."""
