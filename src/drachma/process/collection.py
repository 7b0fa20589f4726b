"""Garbage collection in steps that do not hold the event loop.

An API server keeps hundreds of thousands of objects without cycles, which the collector scans and finds nothing. A scan
holds the loop for as long as it takes, so the interpreter itself scans only new objects, a few at a time. Objects that
have survived that are scanned while the process has nothing else to do, or at the latest when there are many of them.
"""

import asyncio
import gc
import time
from typing import Final

THRESHOLDS: Final = (10_000, 1_000_000, 1_000_000)
"""New containers before the interpreter scans them, and scans before it scans older ones by itself: in effect never."""

_PERIOD_SECONDS: Final = 0.25
_IDLE_SHARE: Final = 0.2
"""Processor time, as a part of the period, below which the process counts as idle."""

_FEW_SCANS: Final = 2
_MOST_SCANS: Final = 20
"""Scans of new objects before those that survived them are scanned again: in an idle process, and in a busy one."""

_FULL_AFTER: Final = 20
"""Scans of such objects before all objects are scanned, in an idle process."""


class OldGenerations:
    """Scans old objects from an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._used = time.process_time()
        self._timer = loop.call_later(_PERIOD_SECONDS, self._check)

    def stop(self) -> None:
        """Scan no more."""
        self._timer.cancel()

    def _check(self) -> None:
        is_idle = time.process_time() - self._used < _IDLE_SHARE * _PERIOD_SECONDS
        generation = choose_generation(gc.get_count(), is_idle=is_idle)
        if generation is not None:
            gc.collect(generation)
        self._used = time.process_time()
        self._timer = self._loop.call_later(_PERIOD_SECONDS, self._check)


def choose_generation(counts: tuple[int, int, int], *, is_idle: bool) -> int | None:
    """Return the generation to collect for the interpreter's counts of scans, or None."""
    _, new_scans, survivor_scans = counts
    if is_idle and survivor_scans >= _FULL_AFTER:
        return 2
    return 1 if new_scans >= (_FEW_SCANS if is_idle else _MOST_SCANS) else None
