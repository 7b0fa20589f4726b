"""Equality of CEL values: ``==`` and everything that compares elements.

Numbers of different types are equal when they are the same number, values of different types are otherwise unequal,
and the types of Kubernetes refuse to be compared with anything else. Called by generated code, lists and sets.
"""

from __future__ import annotations

import math
from typing import Any

from drachma.cel.runtime import faults, formats, kinds, networks, quantities, urls, values
from drachma.values import quantity, semver

_EXACT = frozenset((str, bool, bytes, values.Duration, values.Timestamp, values.TypeValue))


def equal(left: Any, right: Any) -> bool:
    """Whether two values are equal; raises Fault where that question has no answer."""
    if left is None or right is None:
        return left is right
    return same(left, right)


def same(left: Any, right: Any) -> bool:
    """Equality as an element asks it of another: null gets no special treatment on the right."""
    kind, other = left.__class__, right.__class__
    if kind in _EXACT:
        return kind is other and bool(left == right)
    if kind in kinds.NUMBERS:
        return other in kinds.NUMBERS and _same_number(left, right)
    if kind in kinds.LISTS:
        return other in kinds.LISTS and _same_list(left, right)
    if kind in kinds.MAPS:
        return other in kinds.MAPS and _same_map(left, right)
    if left is None:
        return right is None
    if kind is values.Optional:
        if other is not values.Optional:
            return False
        if left is values.NONE or right is values.NONE:
            return left is right
        return same(left.value, right.value)
    return _same_object(left, right)


def is_same(left: Any, right: Any) -> bool:
    """The same, where an error counts as different."""
    try:
        return same(left, right)
    except faults.Fault:
        return False


def differs(left: Any, right: Any) -> bool:
    """``!=``: unlike ``==`` it takes an error for a difference."""
    try:
        return not equal(left, right)
    except faults.Fault:
        return True


def _same_object(left: Any, right: Any) -> bool:
    kind, other = left.__class__, right.__class__
    if kind is quantities.Computed or kind is quantity.Quantity:
        if other is quantity.Quantity:
            return bool(quantities.amount_of(left).nanos == right.nanos)
    elif kind is other:
        if kind is semver.SemVer or kind is networks.IP or kind is networks.CIDR:
            return bool(left == right)
        if kind is formats.Format:
            return bool(left.name == right.name)
        if kind is urls.URL:
            return str(left) == str(right)
    raise faults.no_such_overload()


def _same_number(left: Any, right: Any) -> bool:
    if left.__class__ is float:
        return _same_as_float(left, right)
    if right.__class__ is float:
        return _same_as_float(right, left)
    return bool(left == right)


def _same_as_float(number: float, other: Any) -> bool:
    if math.isnan(number):
        return False
    # Upstream rounds whole numbers to doubles first.
    return number == float(other)


def _same_list(left: Any, right: Any) -> bool:
    if len(left) != len(right):
        return False
    error: faults.Fault | None = None
    for mine, other in zip(left, right, strict=True):
        try:
            if not equal(mine, other):
                return False
        except faults.Fault as fault:
            # As upstream: an error among the elements of a plain list is overlooked.
            if left.__class__ is values.Concat:
                error = error or fault
    if error is not None:
        raise error
    return True


def _same_map(left: Any, right: Any) -> bool:
    if len(left) != len(right):
        return False
    for key, mine in left.items():
        other = values.find(right, values.decode_key(key))
        if other is values.MISSING:
            return False
        try:
            if not equal(mine, other):
                return False
        except faults.Fault:
            continue
    return True


def is_in(value: Any, container: Any) -> bool:
    """``value in container`` for a list or a map."""
    kind = container.__class__
    if kind in kinds.LISTS:
        return any(is_same(value, element) for element in container)
    if kind in kinds.MAPS:
        return values.contains(container, value)
    raise faults.no_such_overload()
