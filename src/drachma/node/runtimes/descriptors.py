"""Reading and writing file descriptors without waiting for them: pipes and terminals, on any event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from typing import Final

_CHUNK: Final = 64 * 1024


async def chunks(descriptor: int) -> AsyncIterator[bytes]:
    """What is written to the other end, until nobody has it open any more."""
    loop = asyncio.get_running_loop()
    os.set_blocking(descriptor, False)
    while True:
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            await _ready(loop.add_reader, loop.remove_reader, descriptor)
            continue
        except OSError:
            # A terminal whose last user has gone answers with an error.
            return
        if not data:
            return
        yield data


async def write(descriptor: int, data: bytes) -> bool:
    """Writes all of it; False where nobody reads."""
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
    """Returns once there is something to be read, such as the end of a process by its descriptor."""
    loop = asyncio.get_running_loop()
    await _ready(loop.add_reader, loop.remove_reader, descriptor)


def close(descriptor: int) -> None:
    """Closes a descriptor, which may be done already."""
    with contextlib.suppress(OSError):
        os.close(descriptor)


async def _ready(add: Callable[..., object], remove: Callable[[int], object], descriptor: int) -> None:
    event = asyncio.Event()
    add(descriptor, event.set)
    try:
        await event.wait()
    finally:
        remove(descriptor)
