"""Values as upstream's messages and conversions print them: numbers, times, lists and maps.

Called by conversions, by the formatting library, and wherever an error text shows a value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from drachma.cel.runtime import instants, kinds, quantities, values

_MAX_SHOWN: Final = 1 << 20


def shortest(number: float) -> str:
    """Go's ``%g``: the fewest digits that identify the number, with an exponent outside 1e-4..1e6."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    sign, digits, exponent = _decimal(number)
    if exponent < -4 or exponent >= 6:
        return _scientific(sign, digits, exponent)
    return _positional(sign, digits, exponent)


def positional(number: float) -> str:
    """Go's ``FormatFloat(x, 'f', -1, 64)``: the fewest digits, never an exponent."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return _positional(*_decimal(number))


def _decimal(number: float) -> tuple[str, str, int]:
    """Sign, significant digits without trailing zeros, and the exponent of the first digit."""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    integer, _, fraction = mantissa.partition(".")
    power = int(exponent or 0) + len(integer) - 1
    digits = integer + fraction
    stripped = digits.lstrip("0")
    power -= len(digits) - len(stripped)
    sign = "-" if math.copysign(1, number) < 0 else ""
    return (sign, stripped.rstrip("0"), power) if stripped else (sign, "0", 0)


def _scientific(sign: str, digits: str, exponent: int) -> str:
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _positional(sign: str, digits: str, exponent: int) -> str:
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    if len(digits) <= exponent + 1:
        return f"{sign}{digits}{'0' * (exponent + 1 - len(digits))}"
    return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"


def show(value: Any) -> str:
    """Go's ``%v`` of a value."""
    kind = value.__class__
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return shortest(value)
    if kind is bytes:
        return f"[{' '.join(map(str, value))}]"
    if value is None:
        return "0"
    if kind in kinds.LISTS:
        return f"[{_joined(map(show, value))}]"
    if kind in kinds.MAPS:
        entries = (f"{show(values.decode_key(key))}: {show(entry)}" for key, entry in value.items())
        return f"{{{_joined(entries)}}}"
    if kind is values.Optional:
        return "optional.none()" if value is values.NONE else f"optional({show(value.value)})"
    if kind is values.TypeValue:
        return str(value.name)
    if kind is values.Duration:
        return instants.show_duration(value)
    if kind is values.Timestamp:
        return instants.show_timestamp(value)
    if kind is quantities.Computed:
        return str(value.amount)
    return str(int(value)) if kind is values.UInt else str(value)


def _joined(parts: Iterable[str]) -> str:
    out, size = [], 0
    for part in parts:
        out.append(part)
        size += len(part)
        values.check_size(size, _MAX_SHOWN)
    return ", ".join(out)


def type_name(value: Any) -> str:
    """Go's ``%v`` of a value's type, which shows the parameters that values do not know."""
    name = kinds.name(value)
    return _PARAMETERS.get(name, name)


_PARAMETERS = {"list": "list(dyn)", "map": "map(dyn, dyn)", "optional_type": "optional_type(dyn)"}
