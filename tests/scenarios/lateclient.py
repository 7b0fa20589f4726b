"""A client whose watches report events late, for components that decide on what their informers have seen.

Over a network every component sees its own writes some time after they are acknowledged. In process it sees them at
once, so a decision on a stale cache shows only here.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any, cast

from drachma import errors
from drachma.client import Client
from drachma.runtime import clock

_WRITES = frozenset(
    {
        "create",
        "create_document",
        "update",
        "update_document",
        "patch",
        "patch_document",
        "patch_stored",
        "delete",
        "bind",
        "evict",
    }
)


class LateClient:
    """Delays every batch of a watch by up to ``seconds``, and every write by a few turns of the event loop.

    Batches of one watch keep their order; watches of different kinds are late by different times. Of the writes, the
    share ``lost`` gets no answer: half of them are stored all the same.
    """

    def __init__(
        self, client: Client, rng: random.Random, *, clock: clock.Clock, seconds: float, lost: float = 0.0
    ) -> None:
        self._lost = lost
        self._client = client
        self._rng = rng
        self._clock = clock
        self._seconds = seconds

    @property
    def client(self) -> Client:
        return cast(Client, self)

    def __getattr__(self, name: str) -> Any:
        if name == "commit":
            # Transactions exist in process only; components fall back to single writes, as over HTTP.
            raise AttributeError(name)
        call = getattr(self._client, name)
        if name not in _WRITES:
            return call

        async def write(*arguments: Any, **options: Any) -> Any:
            await self._yield_turns()
            is_lost = self._rng.random() < self._lost
            if is_lost and self._rng.random() < 0.5:
                raise errors.UnreachableError("the request is lost")
            answer = await call(*arguments, **options)
            await self._yield_turns()
            if is_lost:
                raise errors.UnreachableError("the answer is lost")
            return answer

        return write

    @contextlib.asynccontextmanager
    async def watch(self, kind: Any, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        """Watches with a delay."""
        async with self._client.watch(kind, *arguments, **options) as watch:
            yield _LateWatch(watch, self._clock, rng=self._rng, seconds=self._seconds)

    async def _yield_turns(self) -> None:
        for _ in range(self._rng.randrange(8)):
            await asyncio.sleep(0)


def late(client: Client, *, seed: int, clock: clock.Clock, seconds: float, lost: float = 0.0) -> Client:
    """Make a late client, in the form that control planes of tests wrap theirs with."""
    return LateClient(client, random.Random(seed), clock=clock, seconds=seconds, lost=lost).client


class _LateWatch:
    def __init__(self, watch: Any, clock: clock.Clock, *, rng: random.Random, seconds: float) -> None:
        self._watch = watch
        self._clock = clock
        self._rng = rng
        self._seconds = seconds

    async def batch(self) -> Any:
        events = await self._watch.batch()
        if events:
            await self._clock.sleep(self._rng.uniform(0, self._seconds))
        return events
