"""Notation of quantities: parsing of all spellings that Kubernetes accepts, and the canonical form.

Called by :mod:`drachma.values.quantity` only. A reading is a plain tuple, because making it is on the hot path.

Refused, with upstream's messages: unknown suffixes (``1K``), spaces, underscores, digits that are not ASCII.
As upstream, a number without digits is zero (``-``, ``.``, ``Ki``).
Differs from upstream: a number longer than ``MAX_DIGITS`` digits, or with an exponent above it, is refused
instead of taking memory and time without bound.
"""

from __future__ import annotations

import enum
import re
from typing import Final, TypeAlias

from drachma import errors

MAX_DIGITS: Final = 2000
"""The longest number and the largest exponent accepted."""

NANO: Final = -9
"""The smallest decimal exponent: a quantity is a whole number of nanos."""

INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

_GIGA: Final = 10**9
_INT64_DIGITS: Final = 18
_UNKNOWN: Final = -1
_TEN: Final[tuple[int, ...]] = tuple(10**n for n in range(64))

# Possessive, because the runs of digits overlap: a long wrong text must fail in linear time.
_SHAPE: Final = re.compile(r"([+-]?+)([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?+[0-9]*+)").fullmatch

_WRONG_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"


class Format(enum.Enum):
    """The family of suffixes a quantity is written with."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


class Holder(enum.Enum):
    """Representation of the value upstream."""

    INT64 = enum.auto()
    DECIMAL = enum.auto()


Reading: TypeAlias = tuple[int, int, Holder, Format, bool]
"""Nanos, decimal exponent, holder, format, and whether upstream takes the spelling for canonical."""

# Enum members are slow to look up and used everywhere below.
_INT64: Final = Holder.INT64
_DECIMAL: Final = Holder.DECIMAL
_SI: Final = Format.DECIMAL_SI
_BINARY: Final = Format.BINARY_SI
_EXPONENT: Final = Format.DECIMAL_EXPONENT

_DECIMAL_SUFFIXES: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
# What a binary suffix stands for, and how many digits before it upstream still puts into an int64.
_BINARY_UNITS: Final = {
    suffix: (1024**index, 14 - 3 * index) for index, suffix in enumerate(_BINARY_SUFFIXES) if suffix
}
_DECIMAL_BY_EXPONENT: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}


def parse(text: str) -> Reading:
    """The value spelled by ``text``; raises InvalidValueError with upstream's message."""
    # Nearly all quantities are a few digits with at most one suffix: those need no pattern.
    if text.isascii():
        if text.isdigit():
            digits, exponent = text, 0
        elif (digits := text[:-1]).isdigit():
            exponent = _DECIMAL_SUFFIXES.get(text[-1], _UNKNOWN)
        else:
            exponent = _UNKNOWN
            if (digits := text[:-2]).isdigit() and (binary := _BINARY_UNITS.get(text[-2:])):
                unit, room = binary
                if len(digits) <= room:
                    value = int(digits)
                    return (value * unit * _GIGA, 0, _INT64, _BINARY, value & 7 != 0)
        if exponent != _UNKNOWN and digits[0] != "0" and len(digits) <= _INT64_DIGITS:
            return (int(digits) * _TEN[exponent - NANO], exponent, _INT64, _SI, digits[-3:] != "000")
    return _parse_any(text)


def _parse_any(text: str) -> Reading:
    match = _SHAPE(text)
    if match is None or not text:
        raise errors.InvalidValueError(_WRONG_FORMAT)
    sign, number, fraction, suffix = match.groups("")
    if len(number) + len(fraction) > MAX_DIGITS:
        raise _too_large(text)
    if suffix in _BINARY_UNITS:
        return _binary(sign, number, fraction=fraction, suffix=suffix)
    family = _SI
    if (exponent := _DECIMAL_SUFFIXES.get(suffix)) is None:
        family = _EXPONENT
        exponent = _exponent(suffix)
    digits = (number.lstrip("0") or "0") + fraction
    scale = exponent - len(fraction)
    unscaled = int(sign + digits)
    if not unscaled:
        # Where zero has its point shows only when other numbers are added; far away it would cost as upstream.
        scale = max(-MAX_DIGITS, min(scale, MAX_DIGITS))
    elif exponent > MAX_DIGITS:
        raise _too_large(text)
    if len(digits) <= _INT64_DIGITS and scale >= NANO:
        # Upstream takes these spellings for canonical, sign, leading zeros and all.
        keep = scale % 3 == 0 and digits[0] != "0" and digits[-3:] != "000"
        return (unscaled * power(scale - NANO), scale, _INT64, family, keep)
    if not number and not fraction:
        raise errors.InvalidValueError(_WRONG_NUMBER)
    if not unscaled:
        return (0, scale, _DECIMAL, family, False)
    return (_round_up(unscaled, scale), NANO, _DECIMAL, family, False)


def _binary(sign: str, number: str, *, fraction: str, suffix: str) -> Reading:
    """A number with one of the suffixes ``Ki`` to ``Ei``."""
    unit, room = _BINARY_UNITS[suffix]
    digits = number.lstrip("0") or "0"
    if not fraction and len(digits) <= room:
        value = int(sign + digits)
        # Upstream takes a number that is no multiple of eight for canonical as it is written.
        return (value * unit * _GIGA, 0, _INT64, _BINARY, value & 7 != 0)
    if not number and not fraction:
        raise errors.InvalidValueError(_WRONG_NUMBER)
    unscaled = int(sign + digits + fraction) * unit
    if not unscaled:
        return (0, -len(fraction), _DECIMAL, _BINARY, False)
    nanos = _round_up(unscaled, -len(fraction))
    limit = INT64_MAX * _GIGA
    if not -limit <= nanos <= limit:
        return (limit if nanos > 0 else -limit, 0, _DECIMAL, _BINARY, False)
    return (nanos, NANO, _DECIMAL, _SI if -_GIGA < nanos < _GIGA else _BINARY, False)


def canonical(nanos: int, family: Format) -> str:
    """The shortest whole number with the largest suffix of the family.

    As upstream, binary amounts below 1024 or with a fraction are written with decimal suffixes, and an amount that
    would need a suffix past ``E`` or ``Ei`` is written without any.
    """
    if nanos == 0:
        return "0"
    if family is _BINARY:
        units, fraction = divmod(nanos, _GIGA)
        if not fraction and not -1024 < units < 1024:
            index = 0
            while units % 1024 == 0:
                units //= 1024
                index += 1
            return f"{units}{_BINARY_SUFFIXES[index] if index < len(_BINARY_SUFFIXES) else ''}"
    exponent = NANO
    while nanos % 1000 == 0:
        nanos //= 1000
        exponent += 3
    if family is _EXPONENT:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_BY_EXPONENT.get(exponent, '')}"


def power(exponent: int) -> int:
    """Ten to the power of an exponent that is not negative."""
    return _TEN[exponent] if exponent < len(_TEN) else 10**exponent


def _exponent(suffix: str) -> int:
    """The power of ten of a suffix such as ``e3`` or ``E-3``."""
    try:
        exponent = int(suffix[1:])
    except ValueError:
        raise errors.InvalidValueError(_WRONG_SUFFIX) from None
    if suffix[0] not in "eE" or not INT64_MIN <= exponent <= INT64_MAX:
        raise errors.InvalidValueError(_WRONG_SUFFIX)
    # Upstream narrows it to 32 bits without looking.
    return (exponent + 2**31) % 2**32 - 2**31


def _round_up(unscaled: int, scale: int) -> int:
    """Return the amount in nanos, rounded away from zero, so that the smallest amount is not lost."""
    places = scale - NANO
    if places >= 0:
        return unscaled * power(places)
    # More places than the longest number has digits: no need to build the power to know the answer.
    nanos = 1 if -places > 2 * MAX_DIGITS else -(-abs(unscaled) // power(-places))
    return nanos if unscaled > 0 else -nanos


def _too_large(text: str) -> errors.InvalidValueError:
    excerpt = text if len(text) <= 40 else text[:40] + "..."
    return errors.InvalidValueError(
        f"quantity {excerpt!r}: more than {MAX_DIGITS} digits or an exponent above {MAX_DIGITS} is not supported"
    )
