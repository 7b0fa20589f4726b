"""Amounts of resources as quotas count them: cpu in thousandths, all else in whole units, rounded up.

Amounts are 64-bit integers that stop at their limits instead of wrapping. The largest, :data:`UNLIMITED`, absorbs what
is added to it and taken from it.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Final

from drachma.values import quantity

UNLIMITED: Final = 2**63 - 1
LEAST: Final = -(2**63)

Requests = Mapping[str, int]
"""Amounts by the name of the resource."""

_CPU: Final = "cpu"
_BINARY: Final = frozenset({"memory", "ephemeral-storage"})
_HUGE_PAGES: Final = "hugepages-"
_MILLI: Final = 10**6
_UNIT: Final = 10**9
_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3


def clamp(number: int) -> int:
    """The nearest amount."""
    return LEAST if number < LEAST else min(number, UNLIMITED)


def plus(first: int, second: int) -> int:
    """A sum; with anything unlimited it is unlimited."""
    if first == UNLIMITED or second == UNLIMITED:
        return UNLIMITED
    total = first + second
    return total if LEAST <= total <= UNLIMITED else clamp(total)


def minus(first: int, second: int) -> int:
    """A difference; unlimited less a limited amount is unlimited, and a limited one less an unlimited one the least."""
    if first == UNLIMITED:
        return 0 if second == UNLIMITED else UNLIMITED
    if second == UNLIMITED:
        return LEAST
    rest = first - second
    return rest if LEAST <= rest <= UNLIMITED else clamp(rest)


def requested(name: str, amount: quantity.Quantity) -> int:
    """What a request for a resource counts for."""
    return of_nanos(name, amount.nanos)


def of_nanos(name: str, nanos: int) -> int:
    """The same for a request in nanos: rounded away from zero, as the values of a Quantity are."""
    unit = _MILLI if name == _CPU else _UNIT
    return clamp(-(-nanos // unit) if nanos >= 0 else nanos // unit)


def nanos(name: str, amount: int) -> int:
    """What an amount is in nanos."""
    return amount * (_MILLI if name == _CPU else _UNIT)


def quota(name: str, amount: quantity.Quantity) -> int:
    """What a quota allows; one that is too large to count is unlimited."""
    limit = UNLIMITED // 1000 if name == _CPU else UNLIMITED
    return UNLIMITED if amount.nanos >= limit * _UNIT else requested(name, amount)


def of_list(resources: Mapping[str, quantity.Quantity]) -> dict[str, int]:
    """What a list of requests counts for."""
    return {name: requested(name, amount) for name, amount in resources.items()}


def as_quantity(name: str, amount: int, *, binary: Container[str] = ()) -> quantity.Quantity:
    """An amount as objects and messages show it; ``binary`` names further resources that are counted in bytes."""
    if name == _CPU:
        return quantity.Quantity.from_milli(amount)
    if name in _BINARY or name.startswith(_HUGE_PAGES) or name in binary:
        return quantity.Quantity.parse(str(quantity.Quantity.from_int(amount, format=quantity.Format.BINARY_SI)))
    return quantity.Quantity.from_int(amount)


def walk(names: Iterable[str]) -> list[str]:
    """Names of resources in the order in which Kueue looks at them: by the 64-bit FNV-1a hash of the name."""
    ordered = list(names)
    if len(ordered) > 1:
        ordered.sort(key=lambda name: (_fnv(name), name))
    return ordered


def _fnv(text: str) -> int:
    value = _OFFSET
    for byte in text.encode():
        value = (value ^ byte) * _PRIME & 0xFFFFFFFFFFFFFFFF
    return value
