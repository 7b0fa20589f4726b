"""Durations in the format of Go: ``5m0s``, ``1.5s``."""

from drachma import errors
from drachma.cel.runtime import instants

SECOND = instants.SECOND


def nanoseconds(text: str) -> int:
    """Return a duration in nanoseconds; an empty text is zero. Raises errors.InvalidValueError for a wrong format."""
    if not text:
        return 0
    duration = instants.parse_duration(text)
    if duration is None:
        raise errors.InvalidValueError(f"duration {text!r}: expected a number with a unit, such as 5m or 1.5s")
    return duration.nanos


def show(nanos: int) -> str:
    """Return a duration as Go prints it."""
    return instants.show_duration(instants.Duration(nanos))
