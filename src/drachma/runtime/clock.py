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


async def sleep_unless(event: asyncio.Event, seconds: float, *, time: Clock) -> None:
    """Returns when an event is set, or after so many seconds."""
    tasks = {asyncio.ensure_future(event.wait()), asyncio.ensure_future(time.sleep(seconds))}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
