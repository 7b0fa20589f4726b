"""A queue of keys to work on: each key is in it once, is worked on by one worker at a time, and can be delayed.

A key that is added while it is worked on is worked on again afterwards, so no change is lost and none is handled twice
at once. Failed keys come back after a pause that doubles with every failure in a row. Everything runs in one event
loop; :mod:`drachma.runtime.controller` has the workers.
"""

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

import msgspec

from drachma.runtime import queuemetrics
from drachma.runtime.clock import Clock

KeyT = TypeVar("KeyT", bound=Hashable)


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """First and longest pause of a failed key, and the rate of retries of all keys."""

    initial: float = 0.005
    maximum: float = 1000.0
    per_second: float = 10.0
    burst: int = 100


class _Bucket:
    """Rate limiter: a burst of turns at once, then so many per second."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._interval: Final = 1 / per_second
        self._burst: Final = burst
        self._next = float("-inf")

    def pause(self, now: float) -> float:
        """Take the next turn. Return the seconds until it comes."""
        # The time at which the bucket would have been empty if turns had come evenly.
        self._next = max(self._next, now - self._burst * self._interval) + self._interval
        return max(self._next - now, 0.0)


class Queue(Generic[KeyT]):
    """One queue, named for its metrics."""

    def __init__(
        self,
        name: str,
        *,
        clock: Clock,
        metrics: queuemetrics.Metrics,
        retries: Retries | None = None,
    ) -> None:
        self.name: Final = name
        self._clock: Final = clock
        self._retries: Final = retries or Retries()
        self._bucket: Final = _Bucket(self._retries.per_second, self._retries.burst)
        self._metrics: Final = metrics.of(name)
        self._metrics.watch(
            lambda: len(self._ready), lambda: [clock.monotonic() - began for began in self._processing.values()]
        )
        self._ready: Final[deque[KeyT]] = deque()
        self._dirty: Final[dict[KeyT, float]] = {}
        self._processing: Final[dict[KeyT, float]] = {}
        self._failures: Final[dict[KeyT, int]] = {}
        self._waiting: Final[deque[asyncio.Future[None]]] = deque()
        """Idle workers; each key wakes one of them."""
        self._delayed: Final[list[tuple[float, int, KeyT]]] = []
        self._deadlines: Final[dict[KeyT, float]] = {}
        self._numbers: Final = itertools.count()
        self._timer: asyncio.Task[None] | None = None
        self._timer_deadline = float("inf")

    def __len__(self) -> int:
        """Return the number of keys that wait for a worker."""
        return len(self._ready)

    @property
    def is_idle(self) -> bool:
        """True if no key waits for a worker and none is worked on. Delayed keys do not count."""
        return not self._ready and not self._processing

    def add(self, key: KeyT) -> None:
        """Have a key worked on soon, or again if it is worked on right now."""
        if key in self._dirty:
            return
        self._metrics.adds.inc()
        self._dirty[key] = self._clock.monotonic()
        if key not in self._processing:
            self._enqueue(key)

    def add_after(self, key: KeyT, seconds: float) -> None:
        """Add a key after a delay. An earlier date that was set before stands."""
        if seconds <= 0:
            self.add(key)
            return
        deadline = self._clock.monotonic() + seconds
        if self._deadlines.get(key, float("inf")) <= deadline:
            return
        self._deadlines[key] = deadline
        heapq.heappush(self._delayed, (deadline, next(self._numbers), key))
        self._set_timer()

    def hasten(self, key: KeyT) -> None:
        """Add a key now instead of at the date that was set for it."""
        self._deadlines.pop(key, None)
        self.add(key)

    def retry(self, key: KeyT) -> None:
        """Add a key after a pause that grows with every failure."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self._metrics.retries.inc()
        # After 64 doublings every pause is the longest one.
        pause = min(self._retries.initial * 2 ** min(failures, 64), self._retries.maximum)
        self.add_after(key, max(pause, self._bucket.pause(self._clock.monotonic())))

    def forget(self, key: KeyT) -> None:
        """End a series of failures."""
        self._failures.pop(key, None)

    def failures(self, key: KeyT) -> int:
        """Return how often in a row work on a key has failed."""
        return self._failures.get(key, 0)

    async def get(self) -> KeyT:
        """Return the next key. The caller must call ``done`` with it in the end."""
        while not self._ready:
            await self._arrival()
        key = self._ready.popleft()
        now = self._clock.monotonic()
        self._metrics.waiting.observe(now - self._dirty.pop(key))
        self._processing[key] = now
        return key

    def done(self, key: KeyT) -> None:
        """End work on a key."""
        self._metrics.working.observe(self._clock.monotonic() - self._processing.pop(key))
        if key in self._dirty:
            self._enqueue(key)

    def close(self) -> None:
        """Drop delayed keys."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _enqueue(self, key: KeyT) -> None:
        self._ready.append(key)
        self._wake_one()

    def _wake_one(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _arrival(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            # Another worker takes the key that this one was woken for.
            if self._ready and not waiter.cancelled():
                self._wake_one()
            raise

    def _set_timer(self) -> None:
        if not self._delayed:
            return
        deadline = self._delayed[0][0]
        if self._timer is not None and not self._timer.done() and self._timer_deadline <= deadline:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_deadline = deadline
        self._timer = asyncio.get_running_loop().create_task(self._wait(), name=f"{self.name} queue: timer")

    async def _wait(self) -> None:
        while self._delayed:
            now = self._clock.monotonic()
            deadline, _, key = self._delayed[0]
            if deadline > now:
                self._timer_deadline = deadline
                await self._clock.sleep(deadline - now)
                continue
            heapq.heappop(self._delayed)
            # Ignore an entry if an earlier date was set since.
            if self._deadlines.get(key) == deadline:
                del self._deadlines[key]
                self.add(key)
