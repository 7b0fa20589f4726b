"""Conversions between types: ``int(x)``, ``string(x)``, ``timestamp(x)`` and their kin.

Called through ``library``, by formatting, and by the constant folding of plans. Texts are read as Go reads them.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from drachma.cel import types
from drachma.cel.runtime import arithmetic, faults, instants, kinds, spelling, values

_INTEGER: Final = re.compile(r"[+-]?[0-9]+").fullmatch
_UNSIGNED: Final = re.compile(r"[0-9]+").fullmatch
_FLOAT: Final = re.compile(
    r"[+-]?(?:inf(?:inity)?|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)|nan", re.IGNORECASE
).fullmatch
_HEX_FLOAT: Final = re.compile(r"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]+", re.IGNORECASE).fullmatch
_TRUTH: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def refused(value: Any, target: str) -> faults.Fault:
    """Return the value has no counterpart in the target type."""
    return faults.Fault(f"type conversion error from '{kinds.name(value)}' to '{target}'")


def _int_from_double(number: float) -> int:
    if math.isnan(number) or number <= -(2.0**63) or number >= 2.0**63:
        raise faults.Fault("integer overflow")
    return int(number)


def _int_from_string(text: str) -> int:
    if _INTEGER(text):
        # Leading zeros are harmless, but Python refuses to read thousands of digits.
        digits = text.lstrip("+-").lstrip("0")
        if len(digits) <= 19:
            number = int(text[0] + digits) if digits and text[0] in "+-" else int(digits or "0")
            if values.INT_MIN <= number <= values.INT_MAX:
                return number
    raise refused(text, "int")


def _uint_from_double(number: float) -> values.UInt:
    if math.isnan(number) or number < 0 or number >= 2.0**64:
        raise faults.Fault("unsigned integer overflow")
    return values.UInt(int(number))


def _uint_from_string(text: str) -> values.UInt:
    if _UNSIGNED(text):
        digits = text.lstrip("0")
        if len(digits) <= 20 and int(digits or "0") <= values.UINT_MAX:
            return values.UInt(int(digits or "0"))
    raise refused(text, "uint")


def _separates_digits(text: str) -> bool:
    """Return True if underscores stand between digits only; one may follow the prefix of a hexadecimal number."""
    if "_" not in text:
        return True
    number = text.lstrip("+-")
    hexadecimal = number[:2].lower() == "0x"
    digits = "0123456789abcdefABCDEF" if hexadecimal else "0123456789"
    padded = f" {number} "
    for position, character in enumerate(padded):
        if character == "_":
            after_prefix = hexadecimal and position == 3
            if not (after_prefix or padded[position - 1] in digits) or padded[position + 1] not in digits:
                return False
    return True


def _double_from_string(text: str) -> float:
    if text.isascii() and _separates_digits(text):
        plain = text.replace("_", "")
        if _FLOAT(plain):
            number = float(plain)
            if math.isfinite(number) or "n" in plain.lower():
                return number
        elif _HEX_FLOAT(plain):
            try:
                return float.fromhex(plain)
            except OverflowError:
                pass
    raise refused(text, "double")


def _bool_from_string(text: str) -> bool:
    truth = _TRUTH.get(text)
    if truth is None:
        raise refused(text, "bool")
    return truth


def _duration_from_string(text: str) -> values.Duration:
    duration = instants.parse_duration(text)
    if duration is None:
        raise refused(text, types.DURATION.name)
    return duration


def _timestamp_from_string(text: str) -> values.Timestamp:
    moment = instants.read_timestamp(text)
    if moment is None:
        raise refused(text, types.TIMESTAMP.name)
    if not instants.is_in_range(moment):
        raise faults.Fault("timestamp overflow")
    return moment


def _string_from_bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise faults.Fault("invalid UTF-8 in bytes, cannot convert to string") from None


def _string_from_duration(duration: values.Duration) -> str:
    return spelling.positional(instants.convert_to_units(duration, instants.SECOND)) + "s"


def to_string(value: Any) -> str:
    """``string(value)`` for the types that have one; raises Fault for the others."""
    kind = value.__class__
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is values.UInt:
        return str(int(value))
    if kind is float:
        return spelling.shortest(value)
    if kind is bytes:
        return _string_from_bytes(value)
    if kind is values.Duration:
        return _string_from_duration(value)
    if kind is values.Timestamp:
        return instants.write_timestamp(value)
    if kind is values.TypeValue:
        return str(value.name)
    if value is None:
        return "null"
    raise refused(value, "string")


def type_of(value: Any) -> values.TypeValue:
    """``type(value)``."""
    return values.TypeValue(kinds.name(value))


def _identity(value: Any) -> Any:
    return value


IMPLEMENTATIONS: Final[dict[str, Any]] = {
    "bool_to_bool": _identity,
    "string_to_bool": _bool_from_string,
    "bytes_to_bytes": _identity,
    "string_to_bytes": str.encode,
    "double_to_double": _identity,
    "int64_to_double": float,
    "uint64_to_double": float,
    "string_to_double": _double_from_string,
    "duration_to_duration": _identity,
    "string_to_duration": _duration_from_string,
    "int64_to_int64": _identity,
    "double_to_int64": _int_from_double,
    "duration_to_int64": lambda duration: duration.nanos,
    "string_to_int64": _int_from_string,
    "timestamp_to_int64": lambda moment: moment.nanos // instants.SECOND,
    "uint64_to_int64": lambda number: arithmetic.make_int(int(number)),
    "string_to_string": _identity,
    "bool_to_string": to_string,
    "bytes_to_string": _string_from_bytes,
    "double_to_string": spelling.shortest,
    "duration_to_string": _string_from_duration,
    "int64_to_string": str,
    "timestamp_to_string": instants.write_timestamp,
    "uint64_to_string": to_string,
    "timestamp_to_timestamp": _identity,
    "int64_to_timestamp": instants.from_unix,
    "string_to_timestamp": _timestamp_from_string,
    "uint64_to_uint64": _identity,
    "double_to_uint64": _uint_from_double,
    "int64_to_uint64": arithmetic.make_uint,
    "string_to_uint64": _uint_from_string,
}

SINGLETONS: Final[dict[str, Any]] = {"dyn": _identity, "type": type_of}
