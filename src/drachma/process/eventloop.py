"""The runtime of long-running commands: uvloop, a garbage collector tuned for objects that stay, and the C heap.

With Python's default thresholds the garbage collector takes a quarter of the processor time of a busy control plane. So
objects that exist at the start are never scanned, and the others as :mod:`drachma.process.collection` says.

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
from collections.abc import Iterator
from typing import Final

import uvloop

from drachma.process import collection

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
    gc.set_threshold(*collection.THRESHOLDS)
    sys.setswitchinterval(_SWITCH_SECONDS)
    return_freed_memory()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop_runner:
            old_generations = collection.OldGenerations(loop_runner.get_loop())
            try:
                yield loop_runner
            finally:
                old_generations.stop()
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*before)
        gc.unfreeze()


def return_freed_memory() -> bool:
    """Return large freed blocks to the system at once. Return False if the C library has no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((_M_MMAP_THRESHOLD, _SEPARATE_BYTES), (_M_TRIM_THRESHOLD, _TRIM_BYTES))
    return all(mallopt(ctypes.c_int(option), ctypes.c_int(value)) == 1 for option, value in settings)
