"""Durations as configurations and messages spell them: ``5m0s``, ``1.5s``."""

from drachma import errors
from drachma.cel.runtime import instants

SECOND = instants.SECOND


def nanoseconds(text: str) -> int:
    """How long a text says, in nanoseconds; the empty text is no time. InvalidValueError where it says nothing."""
    if not text:
        return 0
    duration = instants.parse_duration(text)
    if duration is None:
        raise errors.InvalidValueError(f"duration {text!r}: expected a number with a unit, such as 5m or 1.5s")
    return duration.nanos


def show(nanos: int) -> str:
    """A duration as Go prints it."""
    return instants.show_duration(instants.Duration(nanos))
