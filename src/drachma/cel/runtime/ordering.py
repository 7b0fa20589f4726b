"""Order of CEL values: ``<``, ``<=``, ``>``, ``>=`` and everything that sorts.

Numbers compare across their types; NaN has no place in any order. Called by generated code and lists.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from drachma.cel.runtime import faults, kinds, values

_PLAIN: Final = frozenset((str, bytes, bool))


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1; raises Fault for values without a common order."""
    kind, other = left.__class__, right.__class__
    if kind in kinds.NUMBERS:
        if kind is float and math.isnan(left):
            raise faults.Fault("NaN values cannot be ordered")
        if other not in kinds.NUMBERS:
            raise faults.no_such_overload()
        if other is float and math.isnan(right):
            raise faults.Fault("NaN values cannot be ordered")
        return _compare_numbers(left, right)
    if kind is not other:
        raise faults.no_such_overload()
    if kind in _PLAIN:
        return int(left > right) - int(left < right)
    if kind is values.Duration or kind is values.Timestamp:
        return int(left.nanos > right.nanos) - int(left.nanos < right.nanos)
    raise faults.no_such_overload()


def _compare_numbers(left: Any, right: Any) -> int:
    if left.__class__ is float or right.__class__ is float:
        # Whole numbers are rounded to doubles, except that doubles beyond their range stay beyond it.
        left, right = float(left), float(right)
    return int(left > right) - int(left < right)


def _relation(name: str, holds: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    def relate(left: Any, right: Any) -> bool:
        if left.__class__ not in kinds.COMPARABLE:
            raise faults.Fault(f"no such overload: {name}")
        return holds(compare(left, right))

    return relate


OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "_<_": _relation("_<_", lambda order: order < 0),
    "_<=_": _relation("_<=_", lambda order: order <= 0),
    "_>_": _relation("_>_", lambda order: order > 0),
    "_>=_": _relation("_>=_", lambda order: order >= 0),
}
