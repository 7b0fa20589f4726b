"""The time as objects have it: in whole seconds."""

from datetime import datetime

from drachma.runtime import clock


def now(time: clock.Clock) -> datetime:
    """Now, without what objects cannot say of it."""
    return time.utc().replace(microsecond=0)
