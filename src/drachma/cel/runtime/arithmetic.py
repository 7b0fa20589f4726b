"""The operators that compute: ``+ - * / %`` and negation, on numbers, texts, lists and times.

Overflow of 64 bits is an error, division truncates towards zero, and types never mix. Called by generated code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from drachma.cel.runtime import faults, instants, kinds, values

UInt = values.UInt

_INT_OVERFLOW: Final = "integer overflow"
_UINT_OVERFLOW: Final = "unsigned integer overflow"


def make_int(number: int) -> int:
    """Return a computed int; beyond 64 bits it is an overflow."""
    if not values.INT_MIN <= number <= values.INT_MAX:
        raise faults.Fault(_INT_OVERFLOW)
    return number


def make_uint(number: int) -> UInt:
    """Return a computed uint; below zero or beyond 64 bits it is an overflow."""
    if not 0 <= number <= values.UINT_MAX:
        raise faults.Fault(_UINT_OVERFLOW)
    return UInt(number)


def _refuse(operator: str, left: Any) -> faults.Fault:
    """Upstream names the operator unless the left operand is of a type that handles calls itself."""
    if left.__class__ in kinds.RECEIVERS:
        return faults.no_such_overload()
    return faults.Fault(f"no such overload: {operator}")


def add(left: Any, right: Any) -> Any:
    """``left + right``."""
    kind, other = left.__class__, right.__class__
    if kind is other:
        if kind is int:
            return make_int(left + right)
        if kind is str or kind is bytes:
            values.check_size(len(left) + len(right), values.MAX_TEXT)
            return left + right
        if kind is float:
            return left + right
        if kind is UInt:
            return make_uint(int(left) + int(right))
        if kind is values.Duration:
            return instants.make_duration(left.nanos + right.nanos)
    if kind in kinds.LISTS and other in kinds.LISTS:
        return _concatenate(left, right)
    if kind is values.Duration and other is values.Timestamp:
        return instants.shift(right, left.nanos)
    if kind is values.Timestamp and other is values.Duration:
        return instants.shift(left, right.nanos)
    if kind in kinds.ADDABLE:
        raise faults.no_such_overload()
    raise _refuse("_+_", left)


def _concatenate(left: Any, right: Any) -> Any:
    if left.__class__ is values.Growing:
        values.check_size(len(left) + len(right), values.MAX_ELEMENTS)
        left.extend(right)
        return left
    if left.__class__ is values.SetList:
        identities = left.identities()
        return [*left, *(each for each in right if values.identity(each) not in identities)]
    if left.__class__ is values.KeyedList:
        later = {left.identity(each): each for each in right}
        merged = [later.pop(left.identity(each), each) for each in left]
        return [*merged, *later.values()]
    if not left:
        return right
    if not right:
        return left
    return values.Concat(left, right)


def subtract(left: Any, right: Any) -> Any:
    """``left - right``."""
    kind, other = left.__class__, right.__class__
    if kind is other:
        if kind is int:
            return make_int(left - right)
        if kind is float:
            return left - right
        if kind is UInt:
            return make_uint(int(left) - int(right))
        if kind is values.Duration:
            return instants.make_duration(left.nanos - right.nanos)
        if kind is values.Timestamp:
            return instants.between(left, right)
    if kind is values.Timestamp and other is values.Duration:
        return instants.shift(left, instants.make_duration(-right.nanos).nanos)
    if kind in kinds.SUBTRACTABLE:
        raise faults.no_such_overload()
    raise _refuse("_-_", left)


def multiply(left: Any, right: Any) -> Any:
    """``left * right``."""
    kind = left.__class__
    if kind not in kinds.NUMBERS:
        raise _refuse("_*_", left)
    if kind is not right.__class__:
        raise faults.no_such_overload()
    if kind is int:
        return make_int(left * right)
    return left * right if kind is float else make_uint(int(left) * int(right))


def divide(left: Any, right: Any) -> Any:
    """``left / right``; whole numbers are cut towards zero."""
    kind = left.__class__
    if kind not in kinds.NUMBERS:
        raise _refuse("_/_", left)
    if kind is not right.__class__:
        raise faults.no_such_overload()
    if kind is float:
        return _divide_doubles(left, right)
    if right == 0:
        raise faults.Fault("division by zero")
    if kind is UInt:
        return UInt(int(left) // int(right))
    quotient = abs(left) // abs(right)
    return make_int(quotient if (left < 0) == (right < 0) else -quotient)


def _divide_doubles(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def modulo(left: Any, right: Any) -> Any:
    """``left % right``; the result has the sign of the left operand."""
    kind = left.__class__
    if kind is not int and kind is not UInt:
        raise _refuse("_%_", left)
    if kind is not right.__class__:
        raise faults.no_such_overload()
    if right == 0:
        raise faults.Fault("modulus by zero")
    if kind is UInt:
        return UInt(int(left) % int(right))
    if left == values.INT_MIN and right == -1:
        raise faults.Fault(_INT_OVERFLOW)
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def negate(operand: Any) -> Any:
    """``-operand``."""
    kind = operand.__class__
    if kind is int:
        return make_int(-operand)
    if kind is float:
        return -operand
    if kind is values.Duration:
        return instants.make_duration(-operand.nanos)
    if kind is bool:
        raise faults.no_such_overload()
    raise _refuse("-_", operand)


OPERATORS: Final[dict[str, Callable[..., Any]]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
}
