"""Messages of Go's parser of times, which clients see if a timestamp is malformed.

A layout is read as Go reads it: element by element, with the text between them. The message names the element that does
not match, and the rest of the text from there.
"""

from __future__ import annotations

import calendar
import re
from typing import Final, NamedTuple

TIME: Final = "2006-01-02T15:04:05Z07:00"
MICRO_TIME: Final = "2006-01-02T15:04:05.000000Z07:00"

_ELEMENT: Final = re.compile(r"2006|01|02|15|04|05|\.000000|Z07:00")
_TWO_DIGITS: Final = re.compile(r"[0-9]{2}")
_FRACTION: Final = re.compile(r"[.,][0-9]+")
_OFFSET: Final = re.compile(r"[+-]([0-9]{2}):([0-9]{2})")
_PATTERNS: Final = {
    "2006": re.compile(r"[0-9]{4}"),
    "01": _TWO_DIGITS,
    "02": _TWO_DIGITS,
    "15": re.compile(r"[0-9]{1,2}"),
    "04": _TWO_DIGITS,
    "05": _TWO_DIGITS,
    ".000000": re.compile(r"[.,][0-9]{6}"),
    "Z07:00": re.compile(rf"Z|{_OFFSET.pattern}"),
}
_RANGES: Final = {"01": ("month", 1, 12), "15": ("hour", 0, 23), "04": ("minute", 0, 59), "05": ("second", 0, 59)}


class _Part(NamedTuple):
    """Element of a layout, and the text before it."""

    before: str
    element: str


def problem(text: str, layout: str) -> str:
    """Return Go's message about a text that is not a time of this layout; empty if it is one."""
    numbers: dict[str, int] = {}
    rest = text
    for part in _parts(layout):
        for character in part.before:
            if not rest.startswith(character):
                return _mismatch(text, layout, rest=rest, element=part.before)
            rest = rest[1:]
        match = _PATTERNS[part.element].match(rest)
        if match is None:
            return _mismatch(text, layout, rest=rest, element=part.element)
        rest = rest[match.end() :]
        if part.element == "Z07:00":
            out_of_range = _offset_problem(match[0])
        else:
            number = numbers[part.element] = int(match[0].lstrip(".,"))
            name, least, most = _RANGES.get(part.element, ("", number, number))
            out_of_range = "" if least <= number <= most else name
        if out_of_range:
            return f"parsing time {_quote(text)}: {out_of_range} out of range"
        if part.element == "05" and ".000000" not in layout:
            # Go takes fractions of a second that the layout does not have.
            fraction = _FRACTION.match(rest)
            rest = rest[fraction.end() :] if fraction else rest
    if rest:
        return f"parsing time {_quote(text)}: extra text: {_quote(rest)}"
    if not 1 <= numbers["02"] <= _days(numbers["2006"], numbers["01"]):
        return f"parsing time {_quote(text)}: day out of range"
    return ""


def _parts(layout: str) -> list[_Part]:
    parts: list[_Part] = []
    end = 0
    for match in _ELEMENT.finditer(layout):
        parts.append(_Part(layout[end : match.start()], match[0]))
        end = match.end()
    return parts


def _offset_problem(offset: str) -> str:
    match = _OFFSET.fullmatch(offset)
    if match is None:
        return ""
    if int(match[1]) > 24:
        return "time zone offset hour"
    return "time zone offset minute" if int(match[2]) > 60 else ""


def _days(year: int, month: int) -> int:
    # Go's years begin with 0, a leap year, which Python's calendar does not have.
    return calendar.monthrange(year or 4, month)[1]


def _mismatch(text: str, layout: str, *, rest: str, element: str) -> str:
    return f"parsing time {_quote(text)} as {_quote(layout)}: cannot parse {_quote(rest)} as {_quote(element)}"


def _quote(text: str) -> str:
    """Return a text in the quotes of Go's package for times, which writes bytes beyond ASCII as numbers."""
    characters = []
    for character in text:
        if character in '"\\':
            characters.append(f"\\{character}")
        elif " " <= character < "\x80":
            characters.append(character)
        else:
            characters += [f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass")]
    return f'"{"".join(characters)}"'
