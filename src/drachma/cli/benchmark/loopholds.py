"""Holds of the event loop: how long a task that is ready waits for the work of others.

A probe sleeps for a moment, again and again, and notes how late it wakes. Only processor time of the loop's own thread
counts, so that other processes of a busy machine do not.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

_PAUSE_SECONDS: Final = 0.002


class LoopProbe:
    """Probe of one event loop."""

    def __init__(self) -> None:
        self.holds: Final[list[float]] = []
        """Seconds of each hold, in order."""

    async def run(self) -> None:
        """Note holds until cancelled."""
        while True:
            began, busy = time.perf_counter(), time.thread_time()
            await asyncio.sleep(_PAUSE_SECONDS)
            late = time.perf_counter() - began - _PAUSE_SECONDS
            self.holds.append(max(0.0, min(late, time.thread_time() - busy)))
