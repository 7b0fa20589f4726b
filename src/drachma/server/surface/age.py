"""How long ago something was, in kubectl's words: two units at most, coarser the longer it is.

Public: ``since(timestamp, *, now)`` for times as documents write them, ``words(seconds)`` for durations.
"""

from datetime import datetime
from typing import Any, Final

UNKNOWN: Final = "<unknown>"
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY

_STEPS: Final = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)
"""Up to how many seconds to write so many of a unit, and how many of the next smaller unit beside it."""


def parse(timestamp: Any) -> datetime | None:
    """The time that a document writes; None where it has none."""
    if not isinstance(timestamp, str) or not timestamp:
        return None
    return datetime.fromisoformat(timestamp)


def since(timestamp: Any, *, now: datetime) -> str:
    """``5m12s``, or ``<unknown>`` where there is no time."""
    then = parse(timestamp)
    return UNKNOWN if then is None else words((now - then).total_seconds())


def words(seconds: float) -> str:
    """A duration; one that lies a little in the future is none, one further ahead is not valid."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    for limit, size, unit, small_size, small_unit in _STEPS:
        if whole < limit:
            rest = whole % size // small_size if small_size else 0
            return f"{whole // size}{unit}" + (f"{rest}{small_unit}" if rest else "")
    return f"{whole // _YEAR}y"
