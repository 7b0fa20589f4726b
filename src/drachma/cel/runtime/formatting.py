"""``"...".format([...])``: the clauses %s %d %f %e %b %o %x %X, as version 2 of upstream's library prints them.

Called through ``library``. Floating-point clauses follow the printing rules of American English: ``1,234.500000`` and
``1.234500×10⁰³``; upstream passes the precision of %e on as a width, and so do we.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Final

from drachma.cel.runtime import conversions, faults, instants, kinds, spelling, values
from drachma.values import quotation

_DEFAULT_PRECISION: Final = 6
_LARGEST_NUMBER: Final = 10_000_009
_EXACT_DIGITS: Final = 1074
_MAX_NESTED: Final = 1 << 20
_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_Clause = Callable[[Any], str]


class _ClauseError(ValueError):
    """A clause is wrong, or does not accept its argument."""


def format_text(template: str, arguments: Any) -> str:
    """Return the template with each clause replaced by the next argument. Raises Fault with upstream's message."""
    try:
        return _format(template, arguments)
    except _ClauseError as error:
        raise faults.Fault(str(error)) from None


def _format(template: str, arguments: Any) -> str:
    out: list[str] = []
    position = used = size = 0
    while True:
        percent = template.find("%", position)
        if percent < 0:
            out.append(template[position:])
            return "".join(out)
        out.append(template[position:percent])
        if template.startswith("%%", percent):
            out.append("%")
            position = percent + 2
            continue
        if used >= len(arguments):
            raise _ClauseError(f"index {used} out of range")
        if percent + 1 >= len(template):
            raise _ClauseError("unexpected end of string")
        try:
            clause, position = _parse_clause(template, percent + 1)
        except _ClauseError as error:
            raise _ClauseError(f"could not parse formatting clause: {error}") from None
        try:
            out.append(clause(arguments[used]))
        except _ClauseError as error:
            raise _ClauseError(f"error during formatting: {error}") from None
        size += len(out[-1])
        values.check_size(size, values.MAX_TEXT)
        used += 1


def _parse_clause(template: str, position: int) -> tuple[_Clause, int]:
    precision: int | None = None
    if template[position] == ".":
        start = position = position + 1
        while position < len(template) and template[position] in "0123456789":
            position += 1
        if position >= len(template):
            raise _ClauseError("error while parsing precision: could not find end of precision specifier")
        precision = _parse_precision(template[start:position])
    letter = template[position]
    simple = _SIMPLE.get(letter)
    if simple is not None:
        return simple, position + 1
    if letter in "fe":
        digits = _DEFAULT_PRECISION if precision is None else precision
        print_number = _fixed if letter == "f" else _scientific
        return lambda value: print_number(value, digits), position + 1
    # Upstream looks at one byte here.
    character = chr(letter.encode()[0])
    raise _ClauseError(f'unrecognized formatting clause "{character}"')


def _parse_precision(digits: str) -> int:
    prefix = "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing "
    if not digits:
        raise _ClauseError(f'{prefix}"": invalid syntax')
    significant = digits.lstrip("0") or "0"
    if len(significant) > 19 or int(significant) > values.INT_MAX:
        raise _ClauseError(f"{prefix}{quotation.quote(digits)}: value out of range")
    return int(significant)


def _refuse(rule: str, value: Any) -> _ClauseError:
    return _ClauseError(f"{rule}, was given {kinds.name(value)}")


def _string(value: Any) -> str:
    kind = value.__class__
    if kind in kinds.LISTS:
        return f"[{_joined(map(_nested, value))}]"
    if kind in kinds.MAPS:
        return _map(value)
    if kind is bytes:
        try:
            return str(value.decode())
        except UnicodeDecodeError:
            text = "invalid UTF-8 in bytes, cannot convert to string"
            raise _ClauseError(f"could not convert argument {quotation.quote(text)} to string") from None
    if kind in _STRINGS or value is None:
        return conversions.to_string(value)
    rule = (
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
        "and timestamps"
    )
    raise _refuse(rule, value)


_STRINGS: Final = frozenset((int, values.UInt, float, bool, str, values.Timestamp, values.Duration, values.TypeValue))


def _map(value: Any) -> str:
    entries = []
    for encoded, element in value.items():
        key = values.decode_key(encoded)
        if key.__class__ not in (str, bool, int, values.UInt):
            raise _ClauseError(f"no formatting function for map key of type {kinds.name(key)}")
        entries.append((_nested(key), _nested(element)))
    entries.sort(key=lambda entry: entry[0])
    return f"{{{_joined(f'{key}:{element}' for key, element in entries)}}}"


def _joined(parts: Iterable[str]) -> str:
    """Return the parts with commas between them; lists that share parts can be short and their text enormous."""
    out, size = [], 0
    for part in parts:
        out.append(part)
        size += len(part)
        values.check_size(size, _MAX_NESTED)
    return ", ".join(out)


def _nested(value: Any) -> str:
    """Return a value inside a list or map, spelled as a literal."""
    kind = value.__class__
    if kind is str:
        return quotation.quote(value)
    if kind is bytes:
        return f"b{quotation.quote(_string(value))}"
    if kind is float:
        return _nested_double(value)
    if kind is values.Timestamp:
        return f"timestamp({quotation.quote(instants.write_timestamp(value))})"
    if kind is values.Duration:
        return f"duration({quotation.quote(conversions.to_string(value))})"
    if kind in _NESTABLE or kind in kinds.ITERABLE or value is None:
        return _string(value)
    raise _ClauseError(f"no formatting function for {kinds.name(value)}")


_NESTABLE: Final = frozenset((int, values.UInt, bool, values.TypeValue))


def _nested_double(number: float) -> str:
    if math.isfinite(number):
        return f"{number:.6f}"
    return quotation.quote(spelling.shortest(number))


def _decimal(value: Any) -> str:
    if value.__class__ is int or value.__class__ is values.UInt:
        return str(int(value))
    raise _refuse("decimal clause can only be used on integers", value)


def _double(value: Any, rule: str) -> float:
    if value.__class__ is str and value in _SPECIAL:
        return _SPECIAL[value]
    if value.__class__ is not float:
        raise _refuse(rule, value)
    return float(value)


def _fixed(value: Any, precision: int) -> str:
    number = _double(value, "fixed-point clause can only be used on doubles")
    if precision > _LARGEST_NUMBER:
        return "%!(NOVERB)"
    if not math.isfinite(number):
        return _not_finite(number)
    if number == 0:
        number = 0.0
    if precision <= 255:
        return f"{number:,.{precision}f}"
    # Past one byte upstream pads to the remainder only; the digits there are remain.
    integer, _, fraction = f"{number:,.{min(precision, _EXACT_DIGITS)}f}".partition(".")
    fraction = fraction.rstrip("0").ljust(precision % 256, "0")
    return f"{integer}.{fraction}" if fraction else integer


def _scientific(value: Any, width: int) -> str:
    number = _double(value, "scientific clause can only be used on doubles")
    if width > _LARGEST_NUMBER:
        return "%!(NOVERB)"
    width %= 65536
    if not math.isfinite(number):
        return _not_finite(number).rjust(width)
    mantissa, _, exponent = f"{number or 0.0:.6e}".partition("e")
    power = f"{int(exponent):03d}" if int(exponent) < 0 else f"{int(exponent):02d}"
    return f"{mantissa}×10{power.translate(_SUPERSCRIPT)}".rjust(width)


def _not_finite(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "∞" if number > 0 else "-∞"


def _binary(value: Any) -> str:
    kind = value.__class__
    if kind is bool:
        return "1" if value else "0"
    if kind is int or kind is values.UInt:
        return format(int(value), "b")
    raise _refuse("only integers and bools can be formatted as binary", value)


def _octal(value: Any) -> str:
    if value.__class__ is int or value.__class__ is values.UInt:
        return format(int(value), "o")
    raise _refuse("octal clause can only be used on integers", value)


def _hex(value: Any) -> str:
    kind = value.__class__
    if kind is int or kind is values.UInt:
        return format(int(value), "x")
    if kind is str:
        return str(value.encode().hex())
    if kind is bytes:
        return str(value.hex())
    raise _refuse("only integers, byte buffers, and strings can be formatted as hex", value)


_SIMPLE: Final[dict[str, _Clause]] = {
    "s": _string,
    "d": _decimal,
    "b": _binary,
    "o": _octal,
    "x": _hex,
    "X": lambda value: _hex(value).upper(),
}

IMPLEMENTATIONS: Final[dict[str, Any]] = {"string_format": format_text}
