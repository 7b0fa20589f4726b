"""Time as components see it. It is passed in everywhere, so that tests move it by hand and never wait."""

import asyncio
import datetime as dt
from typing import Protocol

from drachma.client.systemclock import SystemClock as SystemClock


class Clock(Protocol):
    """Time for informers, work queues, leases and recorders."""

    def monotonic(self) -> float:
        """Return seconds that only go forward, from an arbitrary start."""

    def utc(self) -> dt.datetime:
        """Return the time of day."""

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""


async def sleep_unless(event: asyncio.Event, seconds: float, *, clock: Clock) -> None:
    """Return when an event is set, or after so many seconds."""
    tasks = {asyncio.ensure_future(event.wait()), asyncio.ensure_future(clock.sleep(seconds))}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
