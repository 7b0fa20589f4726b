"""Amounts of resources as quotas count them: cpu in thousandths, other resources in whole units, rounded up.

Amounts are 64-bit integers that saturate at their limits. The largest, :data:`UNLIMITED`, stays the same when amounts
are added or subtracted.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Final

from drachma.values import quantity

UNLIMITED: Final = 2**63 - 1
LEAST: Final = -(2**63)

Requests = Mapping[str, int]
"""Amounts by resource."""

_CPU: Final = "cpu"
_BINARY: Final = frozenset({"memory", "ephemeral-storage"})
_HUGE_PAGES: Final = "hugepages-"
_MILLI: Final = 10**6
_UNIT: Final = 10**9
_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3


def clamp(number: int) -> int:
    """Return the nearest amount in range."""
    return LEAST if number < LEAST else min(number, UNLIMITED)


def plus(first: int, second: int) -> int:
    """Return the sum; a sum with an unlimited amount is unlimited."""
    if first == UNLIMITED or second == UNLIMITED:
        return UNLIMITED
    total = first + second
    return total if LEAST <= total <= UNLIMITED else clamp(total)


def minus(first: int, second: int) -> int:
    """Return the difference. Unlimited minus limited is unlimited; limited minus unlimited is the least amount."""
    if first == UNLIMITED:
        return 0 if second == UNLIMITED else UNLIMITED
    if second == UNLIMITED:
        return LEAST
    difference = first - second
    return difference if LEAST <= difference <= UNLIMITED else clamp(difference)


def requested(name: str, amount: quantity.Quantity) -> int:
    """Return the amount of a requested quantity."""
    return amount_of_nanos(name, amount.nanos)


def amount_of_nanos(name: str, nanos: int) -> int:
    """Return the amount of a request in nanos, rounded away from zero like the values of a Quantity."""
    unit = _MILLI if name == _CPU else _UNIT
    return clamp(-(-nanos // unit) if nanos >= 0 else nanos // unit)


def nanos(name: str, amount: int) -> int:
    """Return an amount in nanos."""
    return amount * (_MILLI if name == _CPU else _UNIT)


def quota(name: str, amount: quantity.Quantity) -> int:
    """Return the amount of a quota; a quota that is too large to count is unlimited."""
    limit = UNLIMITED // 1000 if name == _CPU else UNLIMITED
    return UNLIMITED if amount.nanos >= limit * _UNIT else requested(name, amount)


def request_amounts(resources: Mapping[str, quantity.Quantity]) -> dict[str, int]:
    """Return the amounts of a list of requests."""
    return {name: requested(name, amount) for name, amount in resources.items()}


def to_quantity(name: str, amount: int, *, binary: Container[str] = ()) -> quantity.Quantity:
    """Return an amount as objects and messages show it; ``binary`` names resources that are shown in bytes."""
    if name == _CPU:
        return quantity.Quantity.from_milli(amount)
    if name in _BINARY or name.startswith(_HUGE_PAGES) or name in binary:
        return quantity.Quantity.parse(str(quantity.Quantity.from_int(amount, format=quantity.Format.BINARY_SI)))
    return quantity.Quantity.from_int(amount)


def walk(names: Iterable[str]) -> list[str]:
    """Return resource names in Kueue's order: by the 64-bit FNV-1a hash of the name."""
    ordered = list(names)
    if len(ordered) > 1:
        ordered.sort(key=lambda name: (_fnv(name), name))
    return ordered


def _fnv(text: str) -> int:
    value = _OFFSET
    for byte in text.encode():
        value = (value ^ byte) * _PRIME & 0xFFFFFFFFFFFFFFFF
    return value
