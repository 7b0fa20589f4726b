"""Time as components see it. Passed in everywhere, so that tests move it by hand and never wait."""

import asyncio
import datetime as dt
import time
from typing import Protocol


class Clock(Protocol):
    """What informers, work queues, leases and recorders need to know about time."""

    def monotonic(self) -> float:
        """Seconds that only ever go forward, from an arbitrary start."""

    def utc(self) -> dt.datetime:
        """The time of day, for what expires at one."""

    async def sleep(self, seconds: float) -> None:
        """Returns after so many seconds."""


class SystemClock:
    """The machine's own clock."""

    monotonic = staticmethod(time.monotonic)

    def utc(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
