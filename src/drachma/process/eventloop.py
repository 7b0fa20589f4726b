"""The event loop of commands that run for long: uvloop, and a garbage collector that knows that most objects stay.

An API server keeps hundreds of thousands of objects that have no cycles. At Python's usual thresholds the collector
walks through them all the time and finds nothing: a quarter of the processor time of a busy control plane. So what
there is at the start is left out for good, and the rest is looked at more rarely; cycles are still collected.
"""

import asyncio
import contextlib
import gc
from collections.abc import Iterator
from typing import Final

import uvloop

_THRESHOLDS: Final = (50_000, 10, 20)
"""New containers until the young are looked at, then how often that until the older, and the oldest, are."""


@contextlib.contextmanager
def runner() -> Iterator[asyncio.Runner]:
    """Runs the coroutines of one command; afterwards the collector is as it was."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as made:
            yield made
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
