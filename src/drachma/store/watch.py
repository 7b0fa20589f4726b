"""Watches: cursors on the shared log of committed events, and the hub that wakes them.

The engine reports committed events to the hub. A watcher has no queue of its own: it remembers its position and reads
on from there. So a slow one costs the others nothing, and ends once the log no longer reaches back to it.
"""

import asyncio
import collections
from collections.abc import Sequence
from typing import Self, TypeAlias

from drachma import errors
from drachma.store import record, state

_BATCH = 256
_BATCH_BYTES = 1 << 20
"""Bytes of events that are returned at once; a watcher that stalls keeps no more than these from being freed."""

_PAUSE = 40e-6
"""Seconds of rest from waking, for every watcher woken: four times what it takes the event loop to wake one.

A hundred watchers are woken at once by a lone event, and every four milliseconds by a stream of them. That
bounds what waking takes from the event loop to a fifth, however many watchers and events there are.
"""

_Scope: TypeAlias = tuple[str, str | None]


def _cut(events: list[record.Event]) -> None:
    """Leave as many events as are handed out at once, at least one."""
    if sum([len(event.record.data) for event in events]) <= _BATCH_BYTES:
        return
    size = 0
    for count, event in enumerate(events):
        size += len(event.record.data)
        if size > _BATCH_BYTES and count:
            del events[count:]
            return


class Subscription:
    """The watch of both stores; see ``protocol.Watch`` for its contract."""

    def __init__(self, hub: "Hub", *, scope: _Scope, after: int) -> None:
        self._hub = hub
        self._resource, self._namespace = scope
        self._seen = after
        self._ready: collections.deque[record.Event] = collections.deque()
        self._waiter: asyncio.Future[None] | None = None
        self._due = False
        self._closed = False

    @property
    def revision(self) -> int:
        if not self._ready and not self._closed and self._seen >= self._hub.state.compacted:
            self._ready.extend(self._read())
        return self._ready[0].record.revision - 1 if self._ready else self._seen

    def ready(self) -> Sequence[record.Event]:
        if self._closed:
            return ()
        if self._ready:
            ready = list(self._ready)
            self._ready.clear()
            return ready
        return self._read() if self._seen >= self._hub.state.compacted else ()

    async def batch(self) -> Sequence[record.Event]:
        while not self._closed:
            events = self.ready()
            if events:
                return events
            if self._seen < self._hub.state.compacted:
                self.close()
                raise self._hub.gone(self._resource, self._seen)
            if self._hub.closed:
                self.close()
            else:
                await self._wait()
        return ()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> record.Event:
        if not self._ready or self._closed:
            events = await self.batch()
            if not events:
                raise StopAsyncIteration
            self._ready.extend(events)
        return self._ready.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._hub.leave(self, (self._resource, self._namespace))
            self.wake()

    @property
    def idle(self) -> bool:
        """True if it waits and there is no event between its revision and the newest committed one."""
        return self._waiter is not None and not self._due and not self._waiter.done()

    def catch_up(self) -> None:
        """Move an idle watcher to the newest revision, so that compaction does not overtake it."""
        self._seen = max(self._seen, self._hub.state.revision)

    def mark_due(self) -> None:
        """Tell an idle watcher that the next commit concerns it, and that it will be woken."""
        self.catch_up()
        self._due = True

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _read(self) -> list[record.Event]:
        """Return the next events of this watch; none if it has seen all of them."""
        committed = self._hub.state
        while events := committed.events(self._resource, self._seen, limit=_BATCH):
            if len(events) > 1:
                _cut(events)
            self._seen = events[-1].record.revision
            if self._namespace is not None:
                events = [event for event in events if event.record.key.namespace == self._namespace]
            if events:
                return events
        self.catch_up()
        return []

    async def _wait(self) -> None:
        if self._waiter is not None:
            raise RuntimeError(f"watch of {self._resource}: two tasks wait on one watch")
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
            self._due = False


class Hub:
    """All watches of a store, by resource and namespace."""

    def __init__(self, committed: state.State) -> None:
        self.state = committed
        self.closed = False
        # Dictionaries keep the order in which watchers came, and are woken.
        self._watches: dict[_Scope, dict[Subscription, None]] = {}
        self._due: list[Subscription] = []
        self._rest_until = 0.0
        self._wake_planned = False

    def watch(self, resource: str, namespace: str | None, *, after: int) -> Subscription:
        if self.closed:
            raise errors.StoreClosedError(f"watch of {resource}: the store is closed")
        if after < self.state.compacted:
            raise self.gone(resource, after)
        scope = (resource, namespace)
        subscription = Subscription(self, scope=scope, after=after)
        self._watches.setdefault(scope, {})[subscription] = None
        return subscription

    def gone(self, resource: str, after: int) -> errors.GoneError:
        return errors.GoneError(
            f"watch of {resource}: revision {after} is compacted, the oldest kept is {self.state.compacted}"
        )

    def leave(self, subscription: Subscription, scope: _Scope) -> None:
        members = self._watches[scope]
        del members[subscription]
        if not members:
            del self._watches[scope]

    def compact(self, compaction: state.Compaction) -> None:
        """Apply a compaction without ending watchers that have seen all events."""
        for members in self._watches.values():
            for subscription in members:
                if subscription.idle:
                    subscription.catch_up()
        self.state.compact(compaction)

    def publish(self, events: Sequence[record.Event]) -> None:
        """Apply committed events and wake their watchers, at once or after a short rest."""
        scopes: dict[_Scope, None] = {}
        for event in events:
            resource, namespace, _ = event.record.key
            if (resource, namespace) not in scopes:
                scopes[resource, namespace] = None
                scopes[resource, None] = None
        for scope in scopes:
            for subscription in self._watches.get(scope, ()):
                if subscription.idle:
                    # Before the events are applied: an idle watcher has seen all events up to here.
                    subscription.mark_due()
                    self._due.append(subscription)
        for event in events:
            self.state.apply(event)
        if self._due and not self._wake_planned:
            loop = asyncio.get_running_loop()
            if self._rest_until <= loop.time():
                self._wake()
            else:
                self._wake_planned = True
                loop.call_at(self._rest_until, self._wake)

    def close(self) -> None:
        self.closed = True
        for members in self._watches.values():
            for subscription in members:
                subscription.wake()

    def _wake(self) -> None:
        self._wake_planned = False
        subscriptions, self._due = self._due, []
        self._rest_until = asyncio.get_running_loop().time() + len(subscriptions) * _PAUSE
        for subscription in subscriptions:
            subscription.wake()
