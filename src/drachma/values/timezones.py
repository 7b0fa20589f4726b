"""Time zones by the names of the tz database.

Names come from clients, and a time zone is read from a file of its name. So a name is looked up among the names of the
database first, and nothing else is ever opened.
"""

import functools
import importlib.resources
import zoneinfo


def find(name: str) -> zoneinfo.ZoneInfo | None:
    """Return a time zone, or None if the database has none of this name."""
    if name not in _names():
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        # The machine has a damaged file of this name.
        return None


@functools.cache
def _names() -> frozenset[str]:
    return frozenset((importlib.resources.files("tzdata") / "zones").read_text(encoding="utf-8").split())
