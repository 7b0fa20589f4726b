"""Turns: bindings that write the same object follow each other instead of failing with conflicts.

Many pods may share one claim. Each binding adds its pod to the consumers of the claim as the previous binding left it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final


class WriteTurns:
    """Locks by key, which exist only while they are held or waited for."""

    def __init__(self) -> None:
        self._locks: Final[dict[str, asyncio.Lock]] = {}
        self._users: Final[dict[str, int]] = {}

    def take(self, keys: Iterable[str]) -> contextlib.AbstractAsyncContextManager[None]:
        """Hold the locks of all keys, taken in one order, so that no two holders wait for each other."""
        ordered = sorted(keys)
        return self._take(ordered) if ordered else contextlib.nullcontext()

    @contextlib.asynccontextmanager
    async def _take(self, ordered: Sequence[str]) -> AsyncIterator[None]:
        for key in ordered:
            self._users[key] = self._users.get(key, 0) + 1
        try:
            async with contextlib.AsyncExitStack() as locks:
                for key in ordered:
                    await locks.enter_async_context(self._locks.setdefault(key, asyncio.Lock()))
                yield
        finally:
            for key in ordered:
                self._users[key] -= 1
                if not self._users[key]:
                    del self._users[key]
                    self._locks.pop(key, None)

    def __len__(self) -> int:
        return len(self._locks)
