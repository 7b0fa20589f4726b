"""Durations in texts: ``90s``, ``1h30m``, ``7d``, or a number of seconds."""

from __future__ import annotations

import re
from typing import Final

from drachma import errors

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PART: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(ms|[smhdw])")
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+")
_MOST: Final = 100 * 366 * 86400.0
"""A century."""


def parse(value: str | float, *, title: str) -> float:
    """Return a duration in seconds. Raises InvalidValueError with the title if it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str) and _WHOLE.fullmatch(value):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(value))
    else:
        seconds = -1.0
    if not 0 <= seconds <= _MOST:
        raise errors.InvalidValueError(
            f"{title} {value!r}: must be a duration such as 90s, 1h30m or 7d, at most 100 years"
        )
    return seconds


def show(seconds: float) -> str:
    """Return a duration as people write it, with at most two units."""
    if seconds < 1:
        return f"{seconds:.1g}s" if seconds else "0s"
    remainder = round(seconds)
    parts = []
    for unit in ("d", "h", "m", "s"):
        number, remainder = divmod(remainder, int(_UNITS[unit]))
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts[:2])
