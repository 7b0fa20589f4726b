"""Quantities in CEL: ``quantity("1Gi")`` and its functions.

Called through ``library``. What ``add`` and ``sub`` give is a :class:`Computed`: upstream's equality does not know such
a value on its right side, and expressions can tell.
"""

from __future__ import annotations

from typing import Any, Final

from drachma import errors
from drachma.cel.runtime import faults
from drachma.values import quantity

Quantity = quantity.Quantity

_LEAST_INTEGER: Final = -(2**63)


class Computed:
    """The result of ``add`` or ``sub``: a quantity in every respect but one (see the module's docstring)."""

    __slots__ = ("amount",)

    def __init__(self, amount: Quantity) -> None:
        self.amount = amount

    def __str__(self) -> str:
        return str(self.amount)


def amount_of(value: Any) -> Quantity:
    """Return the plain quantity of a quantity value."""
    amount: Quantity = value.amount if value.__class__ is Computed else value
    return amount


def parse(text: str) -> Quantity:
    """Return the quantity spelled by ``text``. Raises Fault with upstream's message."""
    try:
        return Quantity.parse(text)
    except errors.InvalidValueError as error:
        raise faults.Fault(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except errors.InvalidValueError:
        return False
    return True


def _compare(left: Any, right: Any) -> int:
    mine, theirs = amount_of(left).nanos, amount_of(right).nanos
    return (mine > theirs) - (mine < theirs)


def _to_integer(value: Any) -> int:
    number = amount_of(value).exact_int64()
    if number is None:
        raise faults.Fault("cannot convert value to integer")
    return number


def _whole(number: int) -> Quantity:
    return Quantity.from_int(number, format=quantity.Format.DECIMAL_EXPONENT)


def _subtract_integer(value: Any, number: int) -> Computed:
    amount = amount_of(value)
    whole = amount.exact_int64()
    if number == _LEAST_INTEGER and whole is not None and whole >= 0:
        # Go negates the number, and the negation of the least integer is itself.
        return Computed(amount + _whole(number))
    return Computed(amount - _whole(number))


IMPLEMENTATIONS: Final[dict[str, Any]] = {
    "string_to_quantity": parse,
    "is_quantity_string": _is_quantity,
    "quantity_sign": lambda value: amount_of(value).sign,
    "quantity_is_greater_than": lambda left, right: _compare(left, right) > 0,
    "quantity_is_less_than": lambda left, right: _compare(left, right) < 0,
    "quantity_compare_to": _compare,
    "quantity_get_float": lambda value: amount_of(value).as_approximate_float(),
    "quantity_get_int": _to_integer,
    "quantity_is_integer": lambda value: amount_of(value).is_integer,
    "quantity_add": lambda left, right: Computed(amount_of(left) + amount_of(right)),
    "quantity_add_int": lambda left, number: Computed(amount_of(left) + _whole(number)),
    "quantity_sub": lambda left, right: Computed(amount_of(left) - amount_of(right)),
    "quantity_sub_int": _subtract_integer,
}
