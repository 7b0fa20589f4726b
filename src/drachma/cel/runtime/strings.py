"""Functions on strings: the strings of the standard library and of upstream's strings extension.

Called through ``library``. Positions count code points, as Python's do.
"""

from __future__ import annotations

from typing import Any, Final

from drachma.cel.runtime import faults, spelling, values

_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_SPACE: Final = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_QUOTED: Final = str.maketrans(dict(zip('\a\b\f\n\r\t\v\\"', (rf"\{letter}" for letter in 'abfnrtv\\"'), strict=True)))


def _out_of_range(index: int) -> faults.Fault:
    return faults.Fault(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return text.find(part, offset) if offset < len(text) else -1


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def _last_index_of_offset(text: str, part: str, offset: int) -> int:
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return text.rfind(part, 0, offset + len(part)) if offset < len(text) else -1


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    occurrences = text.count(old)
    replaced = occurrences if limit < 0 else min(occurrences, limit)
    values.check_size(len(text) + replaced * len(new), values.MAX_TEXT)
    return text.replace(old, new, limit if limit >= 0 else -1)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        characters = list(text)
        if 0 < limit < len(characters):
            return [*characters[: limit - 1], text[limit - 1 :]]
        return characters
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise faults.Fault(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _join(elements: Any, separator: str = "") -> str:
    size = 0
    for element in elements:
        if element.__class__ is not str:
            raise faults.Fault(f"join: invalid input: {spelling.show(element)}")
        size += len(element) + len(separator)
        values.check_size(size, values.MAX_TEXT)
    return separator.join(elements)


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def _require_strings(text: Any, other: Any) -> None:
    if text.__class__ is not str or other.__class__ is not str:
        raise faults.no_such_overload()


def contains(text: Any, part: Any) -> bool:
    """``text.contains(part)``; like the next two it checks its arguments itself."""
    _require_strings(text, part)
    return part in text


def starts_with(text: Any, prefix: Any) -> bool:
    """``text.startsWith(prefix)``."""
    _require_strings(text, prefix)
    return bool(text.startswith(prefix))


def ends_with(text: Any, suffix: Any) -> bool:
    """``text.endsWith(suffix)``."""
    _require_strings(text, suffix)
    return bool(text.endswith(suffix))


UNGUARDED: Final[dict[str, Any]] = {
    "contains_string": contains,
    "starts_with_string": starts_with,
    "ends_with_string": ends_with,
}

IMPLEMENTATIONS: Final[dict[str, Any]] = {
    "string_char_at_int": _char_at,
    "string_index_of_string": _index_of,
    "string_index_of_string_int": _index_of,
    "string_last_index_of_string": _last_index_of,
    "string_last_index_of_string_int": _last_index_of_offset,
    "string_lower_ascii": lambda text: text.translate(_LOWER),
    "string_upper_ascii": lambda text: text.translate(_UPPER),
    "string_replace_string_string": _replace,
    "string_replace_string_string_int": _replace,
    "string_split_string": _split,
    "string_split_string_int": _split,
    "string_substring_int": _substring,
    "string_substring_int_int": _substring_range,
    "string_trim": lambda text: text.strip(_SPACE),
    "strings_quote": _quote,
    "list_join": _join,
    "list_join_string": _join,
}
