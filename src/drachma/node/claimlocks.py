"""One at a time for each claim: pods that share one have it prepared once, and not while it is being given back."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Collection
from typing import Final

from drachma.node.preparedclaims import Key


class ClaimLocks:
    """Locks by the name of a claim, which exist while somebody holds them or waits."""

    def __init__(self) -> None:
        self._locks: Final[dict[Key, asyncio.Lock]] = {}
        self._users: Final[Counter[Key]] = Counter()

    @contextlib.asynccontextmanager
    async def held(self, keys: Collection[Key]) -> AsyncIterator[None]:
        """Holds the locks of claims; all take several in the same order, so that nobody waits for each other."""
        async with contextlib.AsyncExitStack() as stack:
            for key in sorted(set(keys)):
                self._users[key] += 1
                stack.callback(self._let_go, key)
                await stack.enter_async_context(self._locks.setdefault(key, asyncio.Lock()))
            yield

    def _let_go(self, key: Key) -> None:
        self._users[key] -= 1
        if not self._users[key]:
            del self._users[key], self._locks[key]
