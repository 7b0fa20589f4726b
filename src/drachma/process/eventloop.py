"""The runtime of long-running commands: uvloop, a garbage collector tuned for objects that stay, and the C heap.

An API server keeps hundreds of thousands of objects without cycles. With Python's default thresholds the collector
scans them again and again and finds nothing, which takes a quarter of the processor time of a busy control plane, and
each scan holds the loop. So objects that exist at the start are never scanned. The interpreter scans new objects, and
those that have survived a few such scans, not many at a time. All objects are scanned while the process is idle.

By default glibc raises the size from which it maps memory separately up to 32 MiB, once blocks of such a size were
freed. From then on the buffers of TLS connections (256 KiB each) and large documents lie between small blocks in the
heap, and the heap keeps the size of its busiest moment. A fixed size returns these buffers to the system at once.

The event loop gives up Python's lock at each read and write of a socket. If a thread computes meanwhile (a large list,
a costly expression), the loop gets the lock back only after the switch interval, and with Python's 5 ms a busy loop
comes to some hundred socket calls a second. A shorter interval keeps the answers to others fast.
"""

import asyncio
import contextlib
import ctypes
import gc
import sys
import time
from collections.abc import Iterator
from typing import Final

import uvloop

_THRESHOLDS: Final = (10_000, 3, 300)
"""New containers before the interpreter scans them, scans of these before it scans survivors, and scans of survivors
before it scans all objects, which a process does that is never idle.
"""

_FULL_AFTER: Final = 50
"""Scans of survivors before all objects are scanned in an idle process."""

_PERIOD_SECONDS: Final = 0.25
_IDLE_SHARE: Final = 0.2
"""Processor time, as a part of the period, below which the process counts as idle."""

_SWITCH_SECONDS: Final = 0.0005
"""Time for which a thread may compute while the event loop waits for Python's lock."""

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
"""Numbers of options in glibc's malloc.h."""

_SEPARATE_BYTES: Final = 128 * 1024
"""Size from which a block is mapped separately: glibc's initial value, which setting it makes final."""
_TRIM_BYTES: Final = 4 * 2**20
"""Free memory at the top of the heap that is kept for the next allocation."""


@contextlib.contextmanager
def runner() -> Iterator[asyncio.Runner]:
    """Yield a runner for the coroutines of one command, and restore the interpreter's settings at the end."""
    before, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_SECONDS)
    return_freed_memory()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop_runner:
            collector = _IdleCollector(loop_runner.get_loop())
            try:
                yield loop_runner
            finally:
                collector.stop()
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*before)
        gc.unfreeze()


class _IdleCollector:
    """Garbage collector of all objects, which runs on an event loop while the process is idle."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._used = time.process_time()
        self._timer = loop.call_later(_PERIOD_SECONDS, self._check)

    def stop(self) -> None:
        """Collect no more."""
        self._timer.cancel()

    def _check(self) -> None:
        is_idle = time.process_time() - self._used < _IDLE_SHARE * _PERIOD_SECONDS
        if is_idle and gc.get_count()[2] >= _FULL_AFTER:
            gc.collect()
        self._used = time.process_time()
        self._timer = self._loop.call_later(_PERIOD_SECONDS, self._check)


def return_freed_memory() -> bool:
    """Return large freed blocks to the system at once. Return False if the C library has no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((_M_MMAP_THRESHOLD, _SEPARATE_BYTES), (_M_TRIM_THRESHOLD, _TRIM_BYTES))
    return all(mallopt(ctypes.c_int(option), ctypes.c_int(value)) == 1 for option, value in settings)
