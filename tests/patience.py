"""How tests wait for what other processes and threads do: for the condition itself, as long as a busy machine needs.

What is waited for is looked at again and again; a test that waits in vain says what it saw last.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

SECONDS = 120.0
"""How long a busy machine may take for anything."""

_PAUSE_SECONDS = 0.02

SeenT = TypeVar("SeenT")


def until(look: Callable[[], SeenT], holds: Callable[[SeenT], object] = bool, *, what: str) -> SeenT:
    """What is seen as soon as that is as it should be; AssertionError with what was seen last if it never is."""
    end = time.monotonic() + SECONDS
    while not holds(seen := look()):
        assert time.monotonic() < end, _complaint(what, seen)
        time.sleep(_PAUSE_SECONDS)
    return seen


async def until_async(
    look: Callable[[], Awaitable[SeenT]], holds: Callable[[SeenT], object] = bool, *, what: str
) -> SeenT:
    """The same where looking takes waiting; other tasks go on meanwhile."""
    end = time.monotonic() + SECONDS
    while not holds(seen := await look()):
        assert time.monotonic() < end, _complaint(what, seen)
        await asyncio.sleep(_PAUSE_SECONDS)
    return seen


def _complaint(what: str, seen: object) -> str:
    return f"{what}: not within {SECONDS:.0f} s; last seen: {seen!r}"
