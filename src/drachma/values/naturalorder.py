"""Natural order of names: node-2 comes before node-10."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

_NUMBER: Final = re.compile(r"([0-9]+)")

Key: TypeAlias = tuple[tuple[int, int, str], ...]


def key(name: str) -> Key:
    """Return a sort key by which numbers in names count as numbers."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _NUMBER.split(name) if part)
