"""Functions on lists: those of Kubernetes (``sum``, ``isSorted``, ...) and those of upstream's lists extension.

Called through ``library``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from drachma.bounds import effort
from drachma.cel.runtime import arithmetic, equality, faults, kinds, ordering, spelling, values

_MAX_RANGE: Final = 1_000_000
_NUMBERS_PER_EFFORT: Final = 50
_MAX_COMPARED: Final = 10_000
_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ZEROES: Final = {"int": 0, "uint": values.UInt(0), "double": 0.0, "duration": values.Duration(0)}


def _is_sorted(elements: Any) -> bool:
    previous = values.MISSING
    for element in elements:
        if element.__class__ not in kinds.COMPARABLE:
            raise faults.no_such_overload()
        if previous is not values.MISSING and _order(previous, element) > 0:
            return False
        previous = element
    return True


def _order(left: Any, right: Any) -> int:
    """Return the order of two elements; those without one count as equal."""
    try:
        return ordering.compare(left, right)
    except faults.Fault:
        return 0


def _sum_from(zero: Any) -> Callable[[Any], Any]:
    def total(elements: Any) -> Any:
        result = zero
        for element in elements:
            if element.__class__ not in kinds.ADDABLE:
                raise faults.no_such_overload()
            result = arithmetic.add(result, element)
        return result

    return total


def _extreme(name: str, replaced_by: int) -> Callable[[Any], Any]:
    def pick(elements: Any) -> Any:
        best = values.MISSING
        for element in elements:
            if element.__class__ not in kinds.COMPARABLE:
                raise faults.no_such_overload()
            if best is values.MISSING or _order(best, element) == replaced_by:
                best = element
        if best is values.MISSING:
            raise faults.Fault(f"{name} called on empty list")
        return best

    return pick


def _index_of(elements: Any, sought: Any) -> int:
    for position, element in enumerate(elements):
        if equality.is_same(element, sought):
            return position
    return -1


def _last_index_of(elements: Any, sought: Any) -> int:
    for position in range(len(elements) - 1, -1, -1):
        if equality.is_same(elements[position], sought):
            return position
    return -1


def _includes(target: Any, value: Any) -> bool:
    kind = target.__class__
    if kind in kinds.LISTS:
        return any(equality.is_same(element, value) for element in target)
    return equality.is_same(target, value)


def _slice(elements: Any, start: int, end: int) -> list[Any]:
    call = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise faults.Fault(f"{call}, negative indexes not supported")
    if start > end:
        raise faults.Fault(f"{call}, start index must be less than or equal to end index")
    if len(elements) < end:
        raise faults.Fault(f"{call}, list is length {len(elements)}")
    values.check_size(end - start, values.MAX_ELEMENTS)
    return list(elements[start:end])


def _flatten(elements: Any) -> list[Any]:
    if elements.__class__ not in kinds.LISTS:
        raise faults.Fault(f"no such overload: {spelling.type_name(elements)}.flatten()")
    return _flattened(elements, 1)


def _flatten_levels(elements: Any, levels: Any) -> list[Any]:
    if elements.__class__ not in kinds.LISTS or levels.__class__ is not int:
        call = f"{spelling.type_name(elements)}.flatten({spelling.type_name(levels)})"
        raise faults.Fault(f"no such overload: {call}")
    if levels < 0:
        raise faults.Fault("level must be non-negative")
    return _flattened(elements, levels)


def _flattened(elements: Any, levels: int) -> list[Any]:
    values.check_size(len(elements), values.MAX_ELEMENTS)
    result = list(elements)
    # Level by level rather than by recursion: lists may be nested deeper than Python's stack.
    while levels > 0 and any(element.__class__ in kinds.LISTS for element in result):
        following: list[Any] = []
        for element in result:
            kind = element.__class__
            if kind in kinds.LISTS:
                values.check_size(len(following) + len(element), values.MAX_ELEMENTS)
                following.extend(element)
            else:
                following.append(element)
        result = following
        levels -= 1
    return result


def _reverse(elements: Any) -> list[Any]:
    values.check_size(len(elements), values.MAX_ELEMENTS)
    return list(elements)[::-1]


def _range(size: int) -> list[int]:
    if size < 0:
        raise faults.Fault(f"lists.range: size must be non-negative, got {size}")
    if size > _MAX_RANGE:
        raise faults.Fault(f"lists.range: size {size} exceeds maximum allowed ({_MAX_RANGE})")
    effort.spend(size // _NUMBERS_PER_EFFORT)
    return list(range(size))


def _distinct(elements: Any) -> Any:
    if not elements:
        return elements
    _check_pairs(len(elements))
    unique: list[Any] = []
    for element in elements:
        if not any(equality.is_same(element, other) for other in unique):
            unique.append(element)
    return unique


def _check_pairs(size: int) -> None:
    """These functions are charged by the square of the size, after the fact; a hopeless call is not even begun."""
    values.check_size(size, _MAX_COMPARED)


def sort(elements: Any) -> Any:
    """``elements.sort()``."""
    if elements.__class__ not in kinds.LISTS:
        raise _not_a_list("sort", elements)
    return _sort_by_keys(elements, elements)


def sort_by_keys(elements: Any, keys: Any) -> Any:
    """Return the elements in the order of their keys, which ``sortBy`` has computed."""
    if elements.__class__ not in kinds.LISTS:
        raise _not_a_list("@sortByAssociatedKeys", elements)
    return _sort_by_keys(elements, keys)


def _not_a_list(function: str, value: Any) -> faults.Fault:
    if value.__class__ in kinds.RECEIVERS:
        return faults.no_such_overload()
    return faults.Fault(f"no such overload: {function}")


def _sort_by_keys(elements: Any, keys: Any) -> Any:
    if len(elements) != len(keys):
        raise faults.Fault(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(elements)} and {len(keys)} elements respectively"
        )
    if not elements:
        return elements
    _check_pairs(len(elements))
    elements, keys = list(elements), list(keys)
    first = keys[0].__class__
    if first not in kinds.COMPARABLE:
        raise faults.Fault("list elements must be comparable")
    if any(key.__class__ is not first for key in keys):
        raise faults.Fault("list elements must have the same type")
    order = sorted(range(len(keys)), key=functools.cmp_to_key(lambda i, j: _order(keys[i], keys[j])))
    return [elements[position] for position in order]


SINGLETONS: Final[dict[str, Any]] = {"sort": sort, "@sortByAssociatedKeys": sort_by_keys}

UNGUARDED: Final[dict[str, Any]] = {"list_flatten": _flatten, "list_flatten_int": _flatten_levels}

IMPLEMENTATIONS: Final[dict[str, Any]] = {
    **{f"list_{name}_is_sorted_bool": _is_sorted for name in _COMPARABLE},
    **{f"list_{name}_sum_{name}": _sum_from(zero) for name, zero in _ZEROES.items()},
    **{f"list_{name}_max_{name}": _extreme("max", -1) for name in _COMPARABLE},
    **{f"list_{name}_min_{name}": _extreme("min", 1) for name in _COMPARABLE},
    "list_a_index_of_int": _index_of,
    "list_a_last_index_of_int": _last_index_of,
    "list_includes_dyn_dyn": _includes,
    "list_slice": _slice,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_distinct": _distinct,
}
