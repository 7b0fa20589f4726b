"""Events about workloads."""

from __future__ import annotations

from typing import Final

import msgspec

NORMAL: Final = "Normal"
WARNING: Final = "Warning"


class Event(msgspec.Struct, frozen=True):
    """An event about the object with this key."""

    key: str
    type: str
    reason: str
    message: str
