"""The run-time type of a value: its CEL name, the name messages of upstream give it, and what it can do.

Called wherever behaviour depends on the type of a value that the checker did not know.
"""

from __future__ import annotations

from typing import Any, Final

from drachma.cel import types
from drachma.cel.runtime import authorizers, formats, networks, patches, quantities, urls, values
from drachma.values import quantity, semver

_NULL: Final = type(None)

NAMES: Final[dict[type, str]] = {
    bool: "bool",
    bytes: "bytes",
    float: "double",
    int: "int",
    str: "string",
    _NULL: "null_type",
    list: "list",
    tuple: "list",
    dict: "map",
    values.Concat: "list",
    values.DefaultMap: "map",
    values.Duration: types.DURATION.name,
    values.Growing: "list",
    values.KeyedList: "list",
    values.SetList: "list",
    values.GrowingMap: "map",
    values.LazyMap: "map",
    values.NativeMap: "map",
    values.Optional: types.OPTIONAL_NAME,
    values.Timestamp: types.TIMESTAMP.name,
    values.TypeValue: "type",
    values.UInt: "uint",
    authorizers.Authorizer: authorizers.AUTHORIZER,
    authorizers.Decision: authorizers.DECISION,
    authorizers.GroupCheck: authorizers.GROUP_CHECK,
    authorizers.PathCheck: authorizers.PATH_CHECK,
    authorizers.ResourceCheck: authorizers.RESOURCE_CHECK,
    formats.Format: types.NAMED_FORMAT.name,
    networks.CIDR: types.CIDR.name,
    networks.IP: types.IP.name,
    patches.JSONPatchValue: "JSONPatch",
    patches.ObjectValue: "Object",
    quantities.Computed: types.QUANTITY.name,
    quantity.Quantity: types.QUANTITY.name,
    semver.SemVer: types.SEMVER.name,
    urls.URL: types.URL.name,
}

_GO_NAMES: Final[dict[type, str]] = {
    bool: "types.Bool",
    bytes: "types.Bytes",
    float: "types.Double",
    int: "types.Int",
    str: "types.String",
    _NULL: "types.Null",
    list: "*types.baseList",
    tuple: "*types.baseList",
    dict: "*types.baseMap",
    values.Concat: "*types.concatList",
    values.DefaultMap: "cel.mapper",
    values.Duration: "types.Duration",
    values.Growing: "*types.mutableList",
    values.KeyedList: "*common.unstructuredMapList",
    values.SetList: "*common.unstructuredSetList",
    values.GrowingMap: "*types.mutableMap",
    values.LazyMap: "*lazy.MapValue",
    values.NativeMap: "*types.baseMap",
    values.Optional: "*types.Optional",
    values.Timestamp: "types.Timestamp",
    values.TypeValue: "*types.Type",
    values.UInt: "types.Uint",
    authorizers.Authorizer: "library.authorizerVal",
    authorizers.Decision: "library.decisionVal",
    authorizers.GroupCheck: "library.groupCheckVal",
    authorizers.PathCheck: "library.pathCheckVal",
    authorizers.ResourceCheck: "library.resourceCheckVal",
    formats.Format: "cel.Format",
    networks.CIDR: "cel.CIDR",
    networks.IP: "cel.IP",
    patches.JSONPatchValue: "*mutation.JSONPatchVal",
    patches.ObjectValue: "*dynamic.ObjectVal",
    quantities.Computed: "*cel.Quantity",
    quantity.Quantity: "cel.Quantity",
    semver.SemVer: "cel.Semver",
    urls.URL: "cel.URL",
}

LISTS: Final[frozenset[type]] = frozenset(
    (list, tuple, values.Concat, values.Growing, values.KeyedList, values.SetList)
)
MAPS: Final[frozenset[type]] = frozenset(
    (
        *(dict, values.DefaultMap, values.GrowingMap, values.LazyMap, values.NativeMap),
        *(patches.JSONPatchValue, patches.ObjectValue),
    )
)
ITERABLE: Final[frozenset[type]] = LISTS | MAPS
SIZED: Final[frozenset[type]] = ITERABLE | {str, bytes}
NUMBERS: Final[frozenset[type]] = frozenset((int, values.UInt, float))
ADDABLE: Final[frozenset[type]] = LISTS | NUMBERS | {str, bytes, values.Duration, values.Timestamp}
COMPARABLE: Final[frozenset[type]] = NUMBERS | {bool, str, bytes, values.Duration, values.Timestamp}
SUBTRACTABLE: Final[frozenset[type]] = NUMBERS | {values.Duration, values.Timestamp}
RECEIVERS: Final[frozenset[type]] = frozenset((str, values.Duration, values.Timestamp))
"""Types that upstream asks a second time before it says which operator has no overload."""


def name(value: Any) -> str:
    """Return the CEL name of the value's type, such as ``int`` or ``kubernetes.Quantity``."""
    return NAMES[value.__class__]


def go_name(value: Any) -> str:
    """Return the name that upstream's messages print for the value's class."""
    return _GO_NAMES[value.__class__]


def is_assignable(declared: types.Type, value: Any) -> bool:
    """Return True if a parameter of the declared type accepts the value. Checks first elements only."""
    kind = declared.kind
    if kind is types.Kind.DYN or kind is types.Kind.ANY or kind is types.Kind.TYPE_PARAM:
        return True
    if declared.name != NAMES[value.__class__]:
        return False
    if kind is types.Kind.LIST:
        return not value or is_assignable(declared.params[0], value[0])
    if kind is types.Kind.MAP and value:
        key, element = next(iter(value.items()))
        return is_assignable(declared.params[0], values.decode_key(key)) and is_assignable(declared.params[1], element)
    return True


def size(value: Any) -> int:
    """Return the size of a value for the cost of a call: its length, or one."""
    kind = value.__class__
    if kind in SIZED:
        return len(value)
    if kind is networks.IP:
        return 4 if value.version == 4 else 16
    if kind is networks.CIDR:
        return int(-(-value.length // 8))
    return 1


def size_through(value: Any) -> int:
    """Like size(), looking through optionals."""
    while value.__class__ is values.Optional and value is not values.NONE:
        value = value.value
    return size(value)
