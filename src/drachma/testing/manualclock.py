"""Clock that stands still until a test moves it. Sleeping tasks wake when their time has come.

With this clock, the memory store and the in-process client, a whole control plane runs in a test without real waiting,
and the same seed gives the same run.
"""

import asyncio
import datetime as dt
import heapq
import itertools
from typing import Final

START: Final = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
"""Time of day at which every clock begins."""

_BEGINNING: Final = 1000.0
_CALM_TURNS: Final = 3


class ManualClock:
    """Clock that only ``advance`` moves, stopping at every wake-up time. See ``runtime.clock``."""

    def __init__(self) -> None:
        self._now = _BEGINNING
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return self._now

    def utc(self) -> dt.datetime:
        """Return the time of day."""
        return START + dt.timedelta(seconds=self._now - _BEGINNING)

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has moved that far."""
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._numbers), woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Let time pass, with everything that tasks do meanwhile."""
        end = self._now + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            moment, _, woken = heapq.heappop(self._sleepers)
            self._now = max(self._now, moment)
            if not woken.done():
                woken.set_result(None)
                await settle()
        self._now = end
        await settle()

    async def stall(self, seconds: float) -> None:
        """Let time pass while nothing runs, as when the process is stopped. Then wake all tasks whose time has come."""
        self._now += seconds
        await self.advance(0)


async def settle() -> None:
    """Return when no task has anything to do at this moment of a manual clock.

    Such a test does not wait for files, sockets or real time, so an event loop without ready callbacks is idle.
    """
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    calm = 0
    while calm < _CALM_TURNS:
        await asyncio.sleep(0)
        calm = calm + 1 if not ready else 0
