"""Plain JSON documents: copies, and the ways Go prints them in messages that upstream's clients know.

A document is what the JSON decoder gives: dicts, lists, strings, numbers, booleans, None. Documents of the store are
shared, so whoever changes one copies it first. Public: ``copy``, ``without_nulls``, ``same``, ``printed``.
"""

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def copy(value: Any) -> Any:
    """A deep copy of a document; scalars are shared."""
    if isinstance(value, dict):
        return {key: copy(item) if isinstance(item, dict | list) else item for key, item in value.items()}
    if isinstance(value, list):
        return [copy(item) if isinstance(item, dict | list) else item for item in value]
    return value


def without_nulls(value: Any) -> Any:
    """The document without the fields that are null, as a decoder of typed objects sees it; lists keep their nulls."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def same(left: Any, right: Any) -> bool:
    """Whether two documents are equal as JSON: true is not 1, and 1.0 is."""
    if left is right:
        return True
    if left != right:
        return False
    # Python thinks that true is 1. What is also written alike is the same; what is not needs a closer look.
    if isinstance(left, str):
        return True
    return _encode(left) == _encode(right) or _same(left, right)


def _same(left: Any, right: Any) -> bool:
    """The same for what Python thinks is equal."""
    if isinstance(left, dict):
        return all(_same(item, right[key]) for key, item in left.items())
    if isinstance(left, list):
        return all(map(_same, left, right))
    return isinstance(left, bool) == isinstance(right, bool)


def printed(value: Any) -> str:
    """What Go's ``%v`` makes of a decoded document: ``map[a:1 b:[x y]]``."""
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
    """A float in Go's shortest form."""
    text = repr(value)
    if "e" not in text and abs(value) < 1e21:
        return text.removesuffix(".0")
    mantissa, _, exponent = f"{value:e}".partition("e")
    digits = repr(float(repr(value).partition("e")[0])) if "e" in text else mantissa.rstrip("0").rstrip(".")
    return f"{digits.removesuffix('.0')}e{exponent}"
