"""Equality of CEL values: ``==`` and everything that compares elements.

Numbers of different types are equal when they are the same number, values of different types are otherwise unequal,
and the types of Kubernetes refuse to be compared with anything else. Called by generated code, lists and sets.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Generator, Iterable
from typing import Any

from drachma.cel.runtime import faults, formats, kinds, networks, quantities, urls, values
from drachma.values import quantity, semver

_EXACT = frozenset((str, bool, bytes, values.Duration, values.Timestamp, values.TypeValue))


def equal(left: Any, right: Any) -> bool:
    """Return True if two values are equal. Raises Fault where that question has no answer."""
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
    if kind in kinds.ITERABLE or kind is values.Optional:
        return _same_deep(left, right)
    if left is None:
        return right is None
    return _same_object(left, right)


_Comparison = Generator[tuple[Any, Any], bool, bool]
"""Asks for the comparison of two parts, is told the answer (or gets the error), and gives its own."""


def _same_deep(left: Any, right: Any) -> bool:
    """Compares values with parts, without recursion and no two parts twice: both depth and sharing can be great."""
    results: dict[tuple[int, int], bool | faults.Fault] = {}
    stack: list[tuple[tuple[int, int], _Comparison]] = []
    pair, answer = (left, right), None
    while True:
        if answer is None:
            key = (id(pair[0]), id(pair[1]))
            answer = results.get(key)
            if answer is None:
                stack.append((key, _compare(*pair)))
                step: Callable[[], tuple[Any, Any]] = stack[-1][1].__next__
            elif not stack:
                break
        if answer is not None:
            if not stack:
                break
            step = functools.partial(_resume, stack[-1][1], answer)
        answer = None
        try:
            pair = step()
        except StopIteration as stop:
            answer = results[stack.pop()[0]] = bool(stop.value)
        except faults.Fault as fault:
            answer = results[stack.pop()[0]] = fault
    if isinstance(answer, faults.Fault):
        raise answer
    return answer


def _resume(comparison: _Comparison, answer: bool | faults.Fault) -> tuple[Any, Any]:  # noqa: FBT001
    return comparison.throw(answer) if isinstance(answer, faults.Fault) else comparison.send(answer)


def _compare(left: Any, right: Any) -> _Comparison:
    """Yield one level of a comparison of values with parts."""
    kind, other = left.__class__, right.__class__
    if kind in kinds.LISTS:
        if other not in kinds.LISTS or len(left) != len(right):
            return False
        if kind is values.SetList:
            return bool(left.identities() == {values.identity(each) for each in right})
        if kind is values.KeyedList:
            mine = {left.identity(each): each for each in left}
            identities = [left.identity(each) for each in right]
            if mine.keys() != set(identities):
                return False
            pairs = [(mine[identity], each) for identity, each in zip(identities, right, strict=True)]
            return (yield from _compare_parts(pairs, strict=False))
        return (yield from _compare_parts(zip(left, right, strict=True), strict=kind is values.Concat))
    if kind in kinds.MAPS:
        if other not in kinds.MAPS or len(left) != len(right):
            return False
        values_of_right = [(mine, values.find(right, values.decode_key(key))) for key, mine in left.items()]
        if any(entry is values.MISSING for _, entry in values_of_right):
            # A difference before the missing key would be found first, to the same effect.
            return False
        return (yield from _compare_parts(values_of_right, strict=False))
    if other is not values.Optional:
        return False
    if left is values.NONE or right is values.NONE:
        return left is right
    if _has_parts(left.value):
        return (yield left.value, right.value)
    return same(left.value, right.value)


def _compare_parts(pairs: Iterable[tuple[Any, Any]], *, strict: bool) -> _Comparison:
    error: faults.Fault | None = None
    for mine, other in pairs:
        try:
            if mine is None or other is None:
                answer = mine is other
            elif _has_parts(mine):
                answer = yield mine, other
            else:
                answer = same(mine, other)
        except faults.Fault as fault:
            # As upstream: an error among the elements of a plain list or map is overlooked.
            if strict:
                error = error or fault
            continue
        if not answer:
            return False
    if error is not None:
        raise error
    return True


def _has_parts(value: Any) -> bool:
    return value.__class__ in kinds.ITERABLE or value.__class__ is values.Optional


def is_same(left: Any, right: Any) -> bool:
    """Like same(), with an error counted as different."""
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


def is_in(value: Any, container: Any) -> bool:
    """``value in container`` for a list or a map."""
    kind = container.__class__
    if kind in kinds.LISTS:
        return any(is_same(value, element) for element in container)
    if kind in kinds.MAPS:
        return values.contains(container, value)
    raise faults.no_such_overload()
