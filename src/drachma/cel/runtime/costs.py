"""The cost of a call at run time, equal to upstream's actual cost.

Called by the stepwise machine for every call, and by code generation, which turns constant costs into constants. A
charge is either a number or a function of the arguments and the result; errors among them count as size one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from drachma.cel.runtime import faults, formats, kinds, networks, quantities, urls, values
from drachma.values import quantity, semver

LIST: Final = 10
MAP: Final = 30
MESSAGE: Final = 40
STEP: Final = 1
"""Reading a variable, a field or an element."""

Charge = int | Callable[[Sequence[Any], Any], int]

_TENTH: Final = 0.1
_QUARTER: Final = 0.25
_MAX_TRAVERSED: Final = 1 << 20
_UNIT_EQUALITY: Final = frozenset(
    (
        quantity.Quantity,
        quantities.Computed,
        networks.IP,
        networks.CIDR,
        formats.Format,
        urls.URL,
        semver.SemVer,
    )
)


def tenth(size: float) -> int:
    """Return a tenth of a size, rounded up the way upstream's floating point rounds it."""
    return math.ceil(size * _TENTH)


def _scan(position: int, times: int = 1) -> Charge:
    return lambda args, result: tenth(kinds.size(args[position]) * times)


def _scan_result(args: Sequence[Any], result: Any) -> int:
    return tenth(kinds.size(result) * 2)


def _traversal(args: Sequence[Any], result: Any) -> int:
    return traverse(args[0])


def traverse(value: Any) -> int:
    """Return the cost of looking at everything in a value."""
    total = 0
    stack = [value]
    while stack:
        item = stack.pop()
        kind = item.__class__
        if kind is str:
            total += int(len(item.encode()) * _TENTH)
        elif kind is bytes:
            total += int(len(item) * _TENTH)
        elif kind in kinds.LISTS:
            stack.extend(item)
        elif kind in kinds.MAPS:
            stack.extend(values.keys(item))
            stack.extend(item.values())
        else:
            total += 1
        # Shared parts count as often as they occur, which can be more often than there is time for.
        values.check_size(total + len(stack), _MAX_TRAVERSED)
    return total


def _search(args: Sequence[Any], result: Any) -> int:
    text, pattern = kinds.size(args[0]), kinds.size(args[1])
    return tenth(1.0 + text) * math.ceil(pattern * _QUARTER)


def _contains_ip(overload: str) -> Charge:
    def charge(args: Sequence[Any], result: Any) -> int:
        total = tenth(2 * kinds.size(args[0]))
        return total + (tenth(kinds.size(args[1])) if overload == "cidr_contains_ip_string" else 0)

    return charge


def _contains_cidr(overload: str) -> Charge:
    def charge(args: Sequence[Any], result: Any) -> int:
        prefix = kinds.size(args[0])
        total = tenth(2 * prefix) + tenth(prefix) + 1
        return total + (tenth(kinds.size(args[1])) if overload == "cidr_contains_cidr_string" else 0)

    return charge


def _validate(args: Sequence[Any], result: Any) -> int:
    if args[0].__class__ is not formats.Format:
        return 1
    return tenth(1.0 + kinds.size(args[1])) * math.ceil(args[0].regex_size * _QUARTER)


def equals(args: Sequence[Any], result: Any) -> int:
    """Return the cost of ``==``."""
    if args[0].__class__ in _UNIT_EQUALITY:
        return 1
    return smaller(args, result)


def smaller(args: Sequence[Any], result: Any) -> int:
    """Return the cost of ``!=`` and of comparing texts: a tenth of the shorter one."""
    return tenth(min(kinds.size_through(args[0]), kinds.size_through(args[1])))


def _both(args: Sequence[Any], result: Any) -> int:
    return tenth(kinds.size_through(args[0]) + kinds.size_through(args[1]))


def _matches(args: Sequence[Any], result: Any) -> int:
    text, pattern = kinds.size_through(args[0]), kinds.size_through(args[1])
    return tenth(1.0 + text) * math.ceil(pattern * _QUARTER)


def _contains(args: Sequence[Any], result: Any) -> int:
    return tenth(kinds.size_through(args[0])) * tenth(kinds.size_through(args[1]))


def _scan_through(position: int) -> Charge:
    return lambda args, result: tenth(kinds.size_through(args[position]))


def _size_through(args: Sequence[Any], result: Any) -> int:
    return kinds.size_through(args[1])


def _output(args: Sequence[Any], result: Any) -> int:
    return kinds.size_through(result) + 1 + LIST


def _flatten(args: Sequence[Any], result: Any) -> int:
    levels = 1
    if len(args) == 2:
        if args[1].__class__ is not int:
            raise faults.internal(f"interface conversion: ref.Val is {_go_name(args[1])}, not types.Int")
        levels = args[1] if args[1] >= 0 else 1
    return kinds.size_through(args[0]) * levels + 1 + LIST


def _self_compare(position: int) -> Charge:
    def charge(args: Sequence[Any], result: Any) -> int:
        elements = args[position]
        kind = elements.__class__
        if kind not in kinds.LISTS:
            method = "Contains" if kind in kinds.ADDABLE else "Add"
            name = _go_name(elements)
            raise faults.internal(f"interface conversion: {name} is not traits.Lister: missing method {method}")
        factor = 2.1 if elements and elements[0].__class__ in (str, bytes) else 2.0
        return int(float(len(elements) * len(elements)) * factor) + 1 + LIST

    return charge


def _go_name(value: Any) -> str:
    return "*types.Err" if isinstance(value, faults.Fault) else kinds.go_name(value)


def _sets(factor: int) -> Charge:
    return lambda args, result: 1 + kinds.size_through(args[0]) * kinds.size_through(args[1]) * factor


_SORTED: Final = (
    "int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes",
)  # fmt: skip

_BY_OVERLOAD: Final[dict[str, Charge]] = {
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    "list_slice": _output,
    "lists_range": _output,
    "list_reverse": _output,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_distinct": _self_compare(0),
    **{f"list_{name}_sort": _self_compare(0) for name in _SORTED},
    **{f"list_{name}_sortByAssociatedKeys": _self_compare(1) for name in _SORTED},
}

_BY_FUNCTION: Final[dict[str, Charge]] = {
    "check": 350_000,
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _traversal),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _scan(0)),
    **dict.fromkeys(("cidr", "isIP", "isCIDR"), _scan(0)),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _scan(0)),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _scan(0, 2)),
    "join": _scan_result,
    "find": _search,
    "findAll": _search,
    "validate": _validate,
}

_BY_STANDARD_OVERLOAD: Final[dict[str, Charge]] = {
    "starts_with_string": _scan_through(1),
    "ends_with_string": _scan_through(1),
    "string_to_bytes": _scan_through(0),
    "bytes_to_string": _scan_through(0),
    "strings_quote": _scan_through(0),
    "string_format": _scan_through(0),
    "in_list": _size_through,
    **{
        f"{relation}_{kind}": smaller
        for relation in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
    "equals": smaller,
    "not_equals": smaller,
    "add_string": _both,
    "add_bytes": _both,
    "matches": _matches,
    "matches_string": _matches,
    "contains_string": _contains,
}


def charge(function: str, overload: str) -> Charge:
    """Return the cost of a call of the function; ``overload`` is empty if it is only known at run time."""
    cost = _BY_OVERLOAD.get(overload)
    if cost is None:
        cost = _BY_FUNCTION.get(function)
    if cost is not None:
        return cost
    if function == "ip":
        return 1 if overload == "cidr_ip" else _scan(0)
    if function == "containsIP":
        return _contains_ip(overload)
    if function == "containsCIDR":
        return _contains_cidr(overload)
    if function == "_==_":
        return equals
    if function in ("fieldSelector", "labelSelector"):
        return _selector
    return _BY_STANDARD_OVERLOAD.get(overload, 1)


def _selector(args: Sequence[Any], result: Any) -> int:
    length = kinds.size(args[1])
    return LIST + tenth(length) + math.ceil(math.ceil(length * 0.5) * 50.0)
