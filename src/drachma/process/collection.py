"""Garbage collection in steps that do not hold the event loop.

An API server keeps hundreds of thousands of objects without cycles, which the collector scans and finds nothing. A scan
holds the loop for as long as it takes, so the interpreter itself scans only new objects and those that have survived a
few such scans, not many at a time. All objects are scanned while the process has nothing else to do.
"""

import asyncio
import gc
import time
from typing import Final

THRESHOLDS: Final = (10_000, 10, 100)
"""New containers before the interpreter scans them, scans of these before it scans survivors, and scans of survivors
before it scans all objects, which a process does that is never idle.
"""

_PERIOD_SECONDS: Final = 0.25
_IDLE_SHARE: Final = 0.2
"""Processor time, as a part of the period, below which the process counts as idle."""

_FULL_AFTER: Final = 20
"""Scans of survivors before all objects are scanned in an idle process."""


class OldGenerations:
    """Scans all objects from an event loop, while the process is idle."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._used = time.process_time()
        self._timer = loop.call_later(_PERIOD_SECONDS, self._check)

    def stop(self) -> None:
        """Scan no more."""
        self._timer.cancel()

    def _check(self) -> None:
        is_idle = time.process_time() - self._used < _IDLE_SHARE * _PERIOD_SECONDS
        if is_idle and gc.get_count()[2] >= _FULL_AFTER:
            gc.collect()
        self._used = time.process_time()
        self._timer = self._loop.call_later(_PERIOD_SECONDS, self._check)
