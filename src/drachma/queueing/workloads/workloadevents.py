"""What is told about workloads: events, by whoever decided something."""

from __future__ import annotations

from typing import Final

import msgspec

NORMAL: Final = "Normal"
WARNING: Final = "Warning"


class Event(msgspec.Struct, frozen=True):
    """Something to tell about a workload."""

    key: str
    type: str
    reason: str
    message: str
