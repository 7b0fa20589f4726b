"""Numbers as Go's JSON decoder and its schema validators see them."""

import math
from typing import Any, Final

_INT64: Final = 2**63
_SAFE: Final = 2**53 - 1
_EPSILON: Final = 1e-9


def native(value: Any) -> Any:
    """Return a decoded number: an integer beyond 64 bits as a float, which is infinite if it is beyond that, too."""
    if value.__class__ is int and not -_INT64 <= value < _INT64:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return value


def is_whole(number: float) -> bool:
    """Return True if a float is an integer, within the precision of floating point."""
    if not math.isfinite(number) or abs(number) > _SAFE:
        return False
    if number == int(number):
        return True
    integer = float(int(number)) if number > 0 else 0.0
    if integer == 0:
        return False
    return abs(number - integer) / (abs(number) + integer) < _EPSILON


def text(number: float) -> str:
    """Return a number as Go prints it by default."""
    if not isinstance(number, float):
        return str(number)
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
    shortest = repr(number)
    if number == 0 or ("e" not in shortest and 1e-4 <= abs(number) < 1e21):
        return shortest.removesuffix(".0")
    mantissa, _, exponent = shortest.partition("e")
    if not exponent:
        # Python writes fewer numbers with exponents than Go does.
        mantissa, _, exponent = f"{number:.17e}".partition("e")
        mantissa = repr(float(mantissa))
    value = int(exponent)
    if -4 <= value < 21:
        return f"{number:f}".rstrip("0").rstrip(".")
    return f"{mantissa.removesuffix('.0')}e{'-' if value < 0 else '+'}{abs(value):02d}"
