"""Ages and durations in kubectl's form: at most two units, coarser for longer times.

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
"""Limit in seconds, unit with its size, and next smaller unit with its size."""


def parse(timestamp: Any) -> datetime | None:
    """Return the time of a timestamp; None if it is absent."""
    if not isinstance(timestamp, str) or not timestamp:
        return None
    return datetime.fromisoformat(timestamp)


def since(timestamp: Any, *, now: datetime) -> str:
    """Return the age of a timestamp such as ``5m12s``, or ``<unknown>`` if it is absent."""
    then = parse(timestamp)
    return UNKNOWN if then is None else words((now - then).total_seconds())


def words(seconds: float) -> str:
    """Return a duration in words; up to one second below zero is zero, less is ``<invalid>``."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    total = max(total, 0)
    for limit, size, unit, small_size, small_unit in _STEPS:
        if total < limit:
            small_units = total % size // small_size if small_size else 0
            return f"{total // size}{unit}" + (f"{small_units}{small_unit}" if small_units else "")
    return f"{total // _YEAR}y"
