"""Quantity: an exact resource amount such as ``512Mi`` or ``100m``, with Kubernetes' rules and spelling.

Called by all that reads or compares amounts: the codec, CEL, the allocator, the scheduler, quota. Every
quantity is a whole number of nanos, so one Python integer holds the value: order, equality and hash are those
of that integer, whatever the spelling (``0.5Gi == 512Mi``).

Next to the value, a quantity keeps three things because Kubernetes shows them: the *format* (the family of
suffixes), the *text* it was parsed from, and its *representation*. Upstream holds a quantity either as an
int64 with a decimal scale or as a big decimal, and some answers depend on which: ``1Ti`` is an integer there,
``1Pi`` is not.

Reading and spelling, and what is refused, are in :mod:`drachma.values.notation`.
"""

from __future__ import annotations

import math
from typing import Final

from drachma.bounds import memory
from drachma.values import notation
from drachma.values.notation import Format, Holder

__all__ = ["Format", "Quantity"]

_NANO: Final = notation.NANO
_INT64_MIN: Final = notation.INT64_MIN
_INT64_MAX: Final = notation.INT64_MAX
_GIGA: Final = 10**9
_LEAST: Final = _INT64_MIN * _GIGA
_MOST: Final = _INT64_MAX * _GIGA
_CACHED_LENGTH: Final = 48
_INT64: Final = Holder.INT64
_DECIMAL: Final = Holder.DECIMAL
_power: Final = notation.power


class Quantity:
    """An immutable amount; build one with :meth:`parse` or :meth:`from_int`, never directly."""

    __slots__ = ("_canonical", "_format", "_holder", "_nanos", "_scale", "_text")

    # Positional: passing keywords would take longer than all the rest of making a quantity.
    def __init__(
        self, nanos: int, scale: int, holder: Holder, family: Format, text: str = "", canonical: str = ""
    ) -> None:
        self._nanos = nanos
        # The decimal exponent upstream keeps beside its unscaled value.
        self._scale = scale
        self._holder = holder
        self._format = family
        self._text = text
        self._canonical = canonical

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """The quantity spelled by ``text``; raises InvalidValueError with upstream's message."""
        return _parse(text)

    @classmethod
    def from_int(cls, number: int, *, format: Format = Format.DECIMAL_SI) -> Quantity:  # noqa: A002
        """A whole number of units."""
        return cls(number * _GIGA, 0, _holder(number * _GIGA, 0), format)

    @classmethod
    def from_milli(cls, number: int, *, format: Format = Format.DECIMAL_SI) -> Quantity:  # noqa: A002
        """A whole number of thousandths of a unit."""
        return cls(number * 10**6, -3, _holder(number * 10**6, -3), format)

    @property
    def format(self) -> Format:
        """The family of suffixes; what upstream writes may still fall back to DecimalSI to stay exact."""
        return self._format

    @property
    def text(self) -> str:
        """The spelling it was parsed from, or the canonical form of a computed quantity."""
        return self._text or str(self)

    @property
    def nanos(self) -> int:
        """The exact value in billionths of a unit."""
        return self._nanos

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self._nanos > 0) - (self._nanos < 0)

    @property
    def is_integer(self) -> bool:
        """Return True if :meth:`exact_int64` has a result; as in CEL, not for every whole number (``1000m``)."""
        return self.exact_int64() is not None

    def exact_int64(self) -> int | None:
        """Go's AsInt64: the value where upstream holds it as an unscaled int64, otherwise None."""
        if self._holder is not _INT64 or self._scale < 0:
            return None
        integer = self._nanos // _GIGA
        return integer if _INT64_MIN <= integer <= _INT64_MAX else None

    def as_int64(self) -> int:
        """Go's Value: whole units, with a fraction rounded up and overflow beyond int64 as Go has them."""
        return self._scaled_int64(0)

    def milli_value(self) -> int:
        """Go's MilliValue: thousandths, with rounding and overflow as in :meth:`as_int64`."""
        return self._scaled_int64(-3)

    def as_approximate_float(self) -> float:
        """Go's AsApproximateFloat64: the nearest double of the unscaled value times a power of ten."""
        try:
            base = float(self._unscaled())
        except OverflowError:
            base = math.inf * self.sign
        return base if self._scale == 0 else base * _pow10(self._scale)

    def __str__(self) -> str:
        """The canonical form."""
        if not self._canonical:
            if self._nanos == _LEAST and self._holder is _INT64:
                # Upstream cannot negate this one to look for factors; ``-8Ei`` would also be read as less.
                self._canonical = str(_INT64_MIN)
            else:
                self._canonical = notation.canonical(self._nanos, self._format)
        return self._canonical

    def __repr__(self) -> str:
        return f"Quantity({self.text!r})"

    def __hash__(self) -> int:
        return hash(self._nanos)

    # Comparing is the hottest operation of all: an attribute that is missing is cheaper than a look at the type.
    def __eq__(self, other: object) -> bool:
        try:
            return self._nanos == other._nanos  # type: ignore[attr-defined, no-any-return]
        except AttributeError:
            return NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        try:
            return self._nanos < other._nanos
        except AttributeError:
            return NotImplemented

    def __le__(self, other: Quantity) -> bool:
        try:
            return self._nanos <= other._nanos
        except AttributeError:
            return NotImplemented

    def __gt__(self, other: Quantity) -> bool:
        try:
            return self._nanos > other._nanos
        except AttributeError:
            return NotImplemented

    def __ge__(self, other: Quantity) -> bool:
        try:
            return self._nanos >= other._nanos
        except AttributeError:
            return NotImplemented

    def __add__(self, other: Quantity) -> Quantity:
        if other.__class__ is not Quantity:
            return NotImplemented
        return self._plus(other, other._nanos)

    def __sub__(self, other: Quantity) -> Quantity:
        if other.__class__ is not Quantity:
            return NotImplemented
        return self._plus(other, -other._nanos)

    def __neg__(self) -> Quantity:
        return Quantity(-self._nanos, self._scale, self._holder, self._format)

    def __mul__(self, factor: int) -> Quantity:
        if not isinstance(factor, int):
            return NotImplemented
        nanos, scale, holder = self._nanos * factor, self._scale, self._holder
        if holder is _INT64 and nanos:
            # It stays an int64 while the product fits, at its own scale and in whole units, and is whole.
            holder = _DECIMAL if scale < 0 and nanos % _GIGA else _holder(nanos, min(scale, 0))
        elif holder is _INT64 and self._nanos:
            scale = 0
        return Quantity(nanos, scale, holder, self._format)

    __rmul__ = __mul__

    def _plus(self, other: Quantity, addend: int) -> Quantity:
        mine = self._nanos
        total = mine + addend
        # Zero has no spelling of its own to keep.
        family = self._format if mine else other._format
        if self._holder is _DECIMAL or other._holder is _DECIMAL:
            return Quantity(total, min(self._scale, other._scale), _DECIMAL, family)
        if not addend:
            return Quantity(total, self._scale, _INT64, family)
        if not mine:
            return Quantity(total, other._scale, _INT64, family)
        scale = other._scale
        holder = _INT64
        if self._scale > scale:
            holder = _holder(mine, scale)
        elif self._scale < scale:
            scale = self._scale
            holder = _holder(addend, scale)
        if holder is _INT64:
            holder = _holder(total, scale)
        return Quantity(total, scale, holder, family)

    def _unscaled(self) -> int:
        """Upstream's unscaled value: the amount in units of ten to the power of the scale."""
        places = self._scale - _NANO
        return self._nanos // _power(places) if places >= 0 else self._nanos * _power(-places)

    def _scaled_int64(self, scale: int) -> int:
        """The amount in units of ``10**scale``, with the rounding and overflow of Go's ScaledValue."""
        unit = _power(scale - _NANO)
        if self._holder is _INT64:
            quotient, remainder = divmod(abs(self._nanos), unit)
            if remainder:
                quotient += 1
            result = quotient if self._nanos >= 0 else -quotient
            if _INT64_MIN <= result <= _INT64_MAX:
                return result
            # Upstream multiplies unchecked for the usual scales and answers zero for the others.
            return _wrap(result) if self._scale - scale in (1, 2, 3, 6, 9) else 0
        places = scale - self._scale
        unscaled = self._unscaled()
        if places <= 0:
            # A power beyond int64 comes out of Go's conversion (on amd64) as the least int64.
            return _wrap(_wrap(unscaled) * (_power(-places) if places > -19 else _INT64_MIN))
        divisor = _power(places)
        if unscaled < _INT64_MAX and places < 19:
            # Truncated, then one up: below zero that is one more than rounding away from zero would give.
            low = _wrap(unscaled)
            quotient, remainder = divmod(abs(low), divisor)
            return (quotient if low >= 0 else -quotient) + (1 if remainder else 0)
        quotient, remainder = divmod(unscaled, divisor)
        return _wrap(_wrap(quotient) + (1 if remainder else 0))


@memory.remember(entries=4096, longest=_CACHED_LENGTH)
def _parse(text: str) -> Quantity:
    nanos, scale, holder, family, canonical = notation.parse(text)
    return Quantity(nanos, scale, holder, family, text, text if canonical else "")


def _holder(nanos: int, scale: int) -> Holder:
    """An int64 if the amount, in units of ``10**scale``, is one."""
    if scale == 0:
        return _INT64 if _LEAST <= nanos <= _MOST else _DECIMAL
    unit = _power(scale - _NANO)
    return _INT64 if _INT64_MIN * unit <= nanos <= _INT64_MAX * unit else _DECIMAL


def _wrap(number: int) -> int:
    """The low 64 bits as a signed number."""
    return (number - _INT64_MIN) % 2**64 + _INT64_MIN


def _pow10(exponent: int) -> float:
    """Go's math.Pow10, which multiplies two table entries: not always the nearest double."""
    if exponent < -323:
        return 0.0
    if exponent > 308:
        return math.inf
    high, low = divmod(abs(exponent), 32)
    if exponent >= 0:
        return float(f"1e{32 * high}") * float(f"1e{low}")
    return float(f"1e-{32 * high}") / float(f"1e{low}")
