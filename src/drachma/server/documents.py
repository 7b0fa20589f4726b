"""Plain JSON documents: copies, comparison, and Go's printed form for upstream's messages.

A document is the result of the JSON decoder: dicts, lists, strings, numbers, booleans, None. Documents of the store are
shared, so they are copied before they are changed.
"""

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def copy(value: Any) -> Any:
    """Return a deep copy of a document; scalars are shared."""
    if isinstance(value, dict):
        return {key: copy(item) if isinstance(item, dict | list) else item for key, item in value.items()}
    if isinstance(value, list):
        return [copy(item) if isinstance(item, dict | list) else item for item in value]
    return value


def without_nulls(value: Any) -> Any:
    """Return the document without null fields, as a decoder of typed objects sees it; lists keep their nulls."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def same(first: Any, second: Any) -> bool:
    """Return True if two documents are equal as JSON: true is not 1, and 1.0 is."""
    if first is second:
        return True
    if first != second:
        return False
    # In Python, True == 1. Values that are also encoded alike are the same; others need a closer look.
    if isinstance(first, str):
        return True
    return _encode(first) == _encode(second) or _same(first, second)


def _same(first: Any, second: Any) -> bool:
    """Return True if two values that are equal in Python are equal as JSON."""
    if isinstance(first, dict):
        return all(_same(item, second[key]) for key, item in first.items())
    if isinstance(first, list):
        return all(map(_same, first, second))
    return isinstance(first, bool) == isinstance(second, bool)


def printed(value: Any) -> str:
    """Return Go's ``%v`` form of a document: ``map[a:1 b:[x y]]``."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{printed(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(printed, value)) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return number(value) if isinstance(value, float) else str(value)


def number(value: float) -> str:
    """Return a float in Go's shortest form."""
    text = repr(value)
    if "e" not in text and abs(value) < 1e21:
        return text.removesuffix(".0")
    mantissa, _, exponent = f"{value:e}".partition("e")
    digits = repr(float(repr(value).partition("e")[0])) if "e" in text else mantissa.rstrip("0").rstrip(".")
    return f"{digits.removesuffix('.0')}e{exponent}"
