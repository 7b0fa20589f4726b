"""Quantity: an exact resource amount such as ``512Mi`` or ``100m``, with Kubernetes' rules and spelling.

Called by all that reads or compares amounts: the codec, CEL, the allocator, the scheduler, quota. Every
quantity is a whole number of nanos, so one Python integer holds the value: order, equality and hash are those
of that integer, whatever the spelling (``0.5Gi == 512Mi``).

Three things besides the value are remembered because Kubernetes shows them: the *format* (the family of
suffixes), the *text* it was parsed from, and its *representation*. Upstream holds a quantity either as an
int64 with a decimal scale or as a big decimal, and some answers depend on which: ``1Ti`` is an integer there,
``1Pi`` is not.

Refused, with upstream's messages: unknown suffixes (``1K``), spaces, underscores, digits that are not ASCII.
Differs from upstream: a number longer than ``MAX_DIGITS`` digits, or with an exponent above it, is refused
instead of taking memory and time without bound.
"""

from __future__ import annotations

import enum
import functools
import math
import re
from typing import Final

from drachma import errors

MAX_DIGITS: Final = 2000
"""The longest number and the largest exponent accepted."""

_NANO: Final = -9
_INT64_MAX: Final = 2**63 - 1
_INT64_MIN: Final = -(2**63)
_FIXED_DIGITS: Final = 18
_BINARY_DIGITS: Final = 15
_CACHED_LENGTH: Final = 48
_TEN: Final[tuple[int, ...]] = tuple(10**n for n in range(64))

# Possessive, because the runs of digits overlap: a long wrong text must fail in linear time.
_SHAPE: Final = re.compile(r"([+-]?+)0*+([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?+[0-9]*+)").fullmatch

_WRONG_FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"


class Format(enum.Enum):
    """The family of suffixes a quantity is written with."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


_SI: Final = Format.DECIMAL_SI
_BINARY: Final = Format.BINARY_SI
_EXPONENT: Final = Format.DECIMAL_EXPONENT

_DECIMAL_SUFFIXES: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_BY_EXPONENT: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_BY_EXPONENT: Final = {exponent: suffix for suffix, exponent in _BINARY_SUFFIXES.items()}


class Quantity:
    """An immutable amount; build one with :meth:`parse` or :meth:`from_int`, never directly."""

    __slots__ = ("_canonical", "_fixed", "_format", "_nanos", "_scale", "_text")

    def __init__(
        self, nanos: int, scale: int, *, fixed: bool, family: Format, text: str = "", canonical: str = ""
    ) -> None:
        self._nanos = nanos
        # The decimal exponent upstream keeps beside its unscaled value, and whether that is an int64 there.
        self._scale = scale
        self._fixed = fixed
        self._format = family
        self._text = text
        self._canonical = canonical

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """The quantity spelled by ``text``; raises InvalidValueError with upstream's message."""
        # Long texts stay out of the cache so that it cannot be made to hold much memory.
        return _parse_cached(text) if len(text) <= _CACHED_LENGTH else _parse(text)

    @classmethod
    def from_int(cls, number: int, *, format: Format = _SI) -> Quantity:  # noqa: A002 -- upstream's noun
        """A whole number of units."""
        return cls(number * _TEN[9], 0, fixed=_INT64_MIN <= number <= _INT64_MAX, family=format)

    @classmethod
    def from_milli(cls, number: int, *, format: Format = _SI) -> Quantity:  # noqa: A002 -- upstream's noun
        """A whole number of thousandths of a unit."""
        return cls(number * _TEN[6], -3, fixed=_INT64_MIN <= number <= _INT64_MAX, family=format)

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
        """Whether :meth:`exact_int64` has an answer; as in CEL, not for every whole number (``1000m``)."""
        return self.exact_int64() is not None

    def exact_int64(self) -> int | None:
        """Go's AsInt64: the value where upstream holds it as an unscaled int64, otherwise None."""
        if not self._fixed or self._scale < 0:
            return None
        whole = self._nanos // _TEN[9]
        return whole if _INT64_MIN <= whole <= _INT64_MAX else None

    def as_int64(self) -> int:
        """Go's Value: whole units, rounded away from zero; beyond int64 it overflows as Go does."""
        return self._scaled_int64(0)

    def milli_value(self) -> int:
        """Go's MilliValue: thousandths, rounded away from zero; beyond int64 it overflows as Go does."""
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
            self._canonical = _canonical(self._nanos, self._format)
        return self._canonical

    def __repr__(self) -> str:
        return f"Quantity({self.text!r})"

    def __hash__(self) -> int:
        return hash(self._nanos)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not Quantity:
            return NotImplemented
        return self._nanos == other._nanos

    def __lt__(self, other: Quantity) -> bool:
        if other.__class__ is not Quantity:
            return NotImplemented
        return self._nanos < other._nanos

    def __le__(self, other: Quantity) -> bool:
        if other.__class__ is not Quantity:
            return NotImplemented
        return self._nanos <= other._nanos

    def __gt__(self, other: Quantity) -> bool:
        if other.__class__ is not Quantity:
            return NotImplemented
        return self._nanos > other._nanos

    def __ge__(self, other: Quantity) -> bool:
        if other.__class__ is not Quantity:
            return NotImplemented
        return self._nanos >= other._nanos

    def __add__(self, other: Quantity) -> Quantity:
        if other.__class__ is not Quantity:
            return NotImplemented
        return self._plus(other, other._nanos)

    def __sub__(self, other: Quantity) -> Quantity:
        if other.__class__ is not Quantity:
            return NotImplemented
        return self._plus(other, -other._nanos)

    def __neg__(self) -> Quantity:
        return Quantity(-self._nanos, self._scale, fixed=self._fixed, family=self._format)

    def __mul__(self, factor: int) -> Quantity:
        if not isinstance(factor, int):
            return NotImplemented
        nanos, scale, fixed = self._nanos * factor, self._scale, self._fixed
        if fixed and nanos:
            # An int64 stays one while the product fits, at its own scale and in whole units, and is whole.
            fixed = _fits(nanos, scale) and (_fits(nanos, 0) if scale > 0 else nanos % _TEN[9] == 0)
        elif fixed and not factor and self._nanos:
            scale = 0
        return Quantity(nanos, scale, fixed=fixed, family=self._format)

    __rmul__ = __mul__

    def _plus(self, other: Quantity, addend: int) -> Quantity:
        mine = self._nanos
        nanos = mine + addend
        # Zero has no spelling of its own to keep.
        family = self._format if mine else other._format
        scale = self._scale
        fixed = self._fixed and other._fixed
        if scale != other._scale:
            if fixed and not addend:
                pass
            elif fixed and not mine:
                scale = other._scale
            else:
                coarse = mine if scale > other._scale else addend
                scale = min(scale, other._scale)
                fixed = fixed and _fits(coarse, scale) and _fits(nanos, scale)
        elif fixed:
            fixed = _fits(nanos, scale)
        return Quantity(nanos, scale, fixed=fixed, family=family)

    def _unscaled(self) -> int:
        """Upstream's unscaled value: the amount in units of ten to the power of the scale."""
        places = self._scale - _NANO
        return self._nanos // _power(places) if places >= 0 else self._nanos * _power(-places)

    def _scaled_int64(self, scale: int) -> int:
        """The amount in units of ``10**scale``, with the rounding and overflow of Go's ScaledValue."""
        unit = _power(scale - _NANO)
        if self._fixed:
            quotient, rest = divmod(abs(self._nanos), unit)
            if rest:
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
            quotient, rest = divmod(abs(low), divisor)
            return (quotient if low >= 0 else -quotient) + (1 if rest else 0)
        quotient, rest = divmod(unscaled, divisor)
        return _wrap(_wrap(quotient) + (1 if rest else 0))


def _parse(text: str) -> Quantity:
    match = _SHAPE(text)
    if match is None or not text:
        raise errors.InvalidValueError(_WRONG_FORMAT)
    sign, number, fraction, suffix = match.groups("")
    exponent = _DECIMAL_SUFFIXES.get(suffix)
    if exponent is not None:
        family = _SI
    elif (exponent := _BINARY_SUFFIXES.get(suffix)) is not None:
        return _parse_binary(text, match, exponent)
    else:
        family = _EXPONENT
        exponent = _exponent(suffix)
    digits = (number or "0") + fraction
    scale = exponent - len(fraction)
    if len(digits) > MAX_DIGITS or (exponent > MAX_DIGITS and digits.strip("0")):
        raise _too_large(text)
    if len(digits) <= _FIXED_DIGITS and scale >= _NANO:
        nanos = int(digits) * _power(scale + 9)
        # Upstream takes these spellings for canonical, sign, zeros and all.
        keep = scale % 3 == 0 and digits[0] != "0" and digits[-3:] != "000"
        return Quantity(
            -nanos if sign == "-" else nanos, scale,
            fixed=True, family=family, text=text, canonical=text if keep else "",
        )  # fmt: skip
    _require_digit(match)
    unscaled = int(digits)
    if unscaled == 0:
        return Quantity(0, scale, fixed=False, family=family, text=text)
    nanos = _round_up(unscaled, scale)
    return Quantity(-nanos if sign == "-" else nanos, _NANO, fixed=False, family=family, text=text)


_parse_cached = functools.lru_cache(maxsize=4096)(_parse)


def _parse_binary(text: str, match: re.Match[str], exponent: int) -> Quantity:
    sign, number, fraction, _ = match.groups("")
    digits = number or "0"
    if len(digits) + len(fraction) > MAX_DIGITS:
        raise _too_large(text)
    if not fraction and len(digits) + exponent * 3 // 10 < _BINARY_DIGITS:
        value = int(digits)
        nanos = (value << exponent) * _TEN[9]
        return Quantity(
            -nanos if sign == "-" else nanos, 0,
            fixed=True, family=_BINARY, text=text, canonical=text if value & 7 else "",
        )  # fmt: skip
    _require_digit(match)
    unscaled = int(digits + fraction) << exponent
    if unscaled == 0:
        return Quantity(0, -len(fraction), fixed=False, family=_BINARY, text=text)
    nanos, scale = _round_up(unscaled, -len(fraction)), _NANO
    family = _BINARY
    if nanos > _INT64_MAX * _TEN[9]:
        nanos, scale = _INT64_MAX * _TEN[9], 0
    elif nanos < _TEN[9]:
        family = _SI
    return Quantity(-nanos if sign == "-" else nanos, scale, fixed=False, family=family, text=text)


def _exponent(suffix: str) -> int:
    """The power of ten of a suffix such as ``e3`` or ``E-3``."""
    try:
        if suffix[0] not in "eE":
            raise ValueError
        exponent = int(suffix[1:])
    except ValueError:
        raise errors.InvalidValueError(_WRONG_SUFFIX) from None
    if not _INT64_MIN <= exponent <= _INT64_MAX:
        raise errors.InvalidValueError(_WRONG_SUFFIX)
    # Upstream narrows it to 32 bits without looking.
    return (exponent + 2**31) % 2**32 - 2**31


def _require_digit(match: re.Match[str]) -> None:
    """Upstream reads a number without digits as zero, except where it needs a big decimal."""
    if not any(character.isdigit() for character in match.string[: match.start(4)]):
        raise errors.InvalidValueError(_WRONG_NUMBER)


def _round_up(unscaled: int, scale: int) -> int:
    """A positive amount in nanos: whoever asks for very little gets the least there is."""
    places = scale - _NANO
    if places >= 0:
        return unscaled * _power(places)
    if -places > 2 * MAX_DIGITS:
        return 1
    return -(-unscaled // _power(-places))


def _too_large(text: str) -> errors.InvalidValueError:
    shown = text if len(text) <= 40 else text[:40] + "..."
    return errors.InvalidValueError(
        f"quantity {shown!r}: a number of more than {MAX_DIGITS} digits is not supported"
    )


def _fits(nanos: int, scale: int) -> bool:
    """Whether the amount, in units of ``10**scale``, is an int64."""
    unit = _power(scale - _NANO)
    return _INT64_MIN * unit <= nanos <= _INT64_MAX * unit


def _power(exponent: int) -> int:
    return _TEN[exponent] if exponent < len(_TEN) else 10**exponent


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


def _canonical(nanos: int, family: Format) -> str:
    """The largest suffix that leaves a whole number.

    As upstream, a value that needs a suffix past ``E`` or ``Ei`` is written without any.
    """
    if nanos == 0:
        return "0"
    if family is _BINARY:
        whole, rest = divmod(nanos, _TEN[9])
        if rest or -1024 < whole < 1024:
            family = _SI
        else:
            exponent = 0
            while whole % 1024 == 0:
                whole //= 1024
                exponent += 10
            return f"{whole}{_BINARY_BY_EXPONENT.get(exponent, '')}"
    exponent = _NANO
    while nanos % 1000 == 0:
        nanos //= 1000
        exponent += 3
    if family is _EXPONENT:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_BY_EXPONENT.get(exponent, '')}"
