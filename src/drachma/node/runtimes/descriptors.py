"""Non-blocking reads and writes of file descriptors of pipes and terminals, on any event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from typing import Final

_CHUNK: Final = 64 * 1024


async def chunks(descriptor: int) -> AsyncIterator[bytes]:
    """Yield the data from the other end, until it is closed everywhere."""
    loop = asyncio.get_running_loop()
    os.set_blocking(descriptor, False)
    while True:
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            await _ready(loop.add_reader, loop.remove_reader, descriptor)
            continue
        except OSError:
            # A terminal returns an error once its last user has closed it.
            return
        if not data:
            return
        yield data


async def write(descriptor: int, data: bytes) -> bool:
    """Write all data. Return False if the other end is closed."""
    loop = asyncio.get_running_loop()
    os.set_blocking(descriptor, False)
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:
            await _ready(loop.add_writer, loop.remove_writer, descriptor)
        except OSError:
            return False
    return True


async def readable(descriptor: int) -> None:
    """Wait until a descriptor is readable; the descriptor of a process is readable once the process has ended."""
    loop = asyncio.get_running_loop()
    await _ready(loop.add_reader, loop.remove_reader, descriptor)


def close(descriptor: int) -> None:
    """Close a descriptor, unless it is closed already."""
    with contextlib.suppress(OSError):
        os.close(descriptor)


async def _ready(add: Callable[..., object], remove: Callable[[int], object], descriptor: int) -> None:
    event = asyncio.Event()
    add(descriptor, event.set)
    try:
        await event.wait()
    finally:
        remove(descriptor)
