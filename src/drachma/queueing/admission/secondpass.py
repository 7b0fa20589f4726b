"""Second passes: workloads that hold quota and still have to be placed on a topology.

A workload is taken up again after its nodes were provisioned, or after one of its nodes failed. Each attempt that finds
no places doubles the pause before the next one.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

_FIRST_PAUSE: Final = timedelta(seconds=1)
_LONGEST_PAUSE: Final = timedelta(seconds=30)


class _Pass(NamedTuple):
    due: datetime
    number: int


class SecondPasses:
    """Workloads by key, with the time of their next attempt."""

    def __init__(self) -> None:
        self._passes: Final[dict[str, _Pass]] = {}

    def __len__(self) -> int:
        return len(self._passes)

    def put(self, key: str, now: datetime, *, number: int = 0) -> None:
        """Schedule the attempt after ``number`` failed ones, unless an attempt is scheduled already."""
        if key not in self._passes:
            pause = min(_FIRST_PAUSE * 2 ** min(number, 8), _LONGEST_PAUSE)
            self._passes[key] = _Pass(now + pause, number + 1)

    def drop(self, key: str) -> None:
        """Forget a workload that needs no second pass."""
        self._passes.pop(key, None)

    def take_due(self, now: datetime) -> dict[str, int]:
        """Remove and return the workloads whose attempt is due, each with the number of the attempt."""
        ready = {key: each.number for key, each in self._passes.items() if each.due <= now}
        for key in ready:
            del self._passes[key]
        return ready

    @property
    def next_due(self) -> datetime | None:
        """Time of the earliest attempt."""
        return min((each.due for each in self._passes.values()), default=None)
