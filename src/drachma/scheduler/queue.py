"""Queue of pods that wait for a node: active, backing off after a failed attempt, or parked until a change helps.

Informers add pods and report changes. The scheduler pops the most important pod, and puts it back if it did not fit. A
parked pod is woken by changes that help according to the queueing hints of a plugin that rejected it, or after five
minutes. PreEnqueue plugins are asked before a pod becomes active: a pod that waits for its claims or gates never takes
the scheduler's time. The pause after a failed attempt ends early if no other pod is active, unless the attempt failed
with an error.

A pod for which a remedy is being applied stays parked. A change that helps it meanwhile, such as the first of several
evictions, counts once the remedy is applied.

The clock is passed in. Nothing here waits.
"""

from __future__ import annotations

import collections
import enum
import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeVar

import msgspec

from drachma.api import pod
from drachma.claims import podclaims
from drachma.runtime import cache
from drachma.scheduler.framework import hints, verdict
from drachma.scheduler.snapshot import changes, podinfo

IndexT = TypeVar("IndexT")

_DOUBLINGS: Final = 64

_RETRIES_AT_ONCE: Final = 3
"""Number of decisions in a row that may come too late before the pod pauses."""


class Where(enum.StrEnum):
    """Part of the queue."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    PARKED = "unschedulable"
    GATED = "gated"
    """Parked and never tried, because a PreEnqueue plugin rejects the pod."""
    OUT = "out"


class Pauses(msgspec.Struct, frozen=True, kw_only=True):
    """Pauses between attempts, in seconds."""

    initial: float = 1.0
    maximum: float = 10.0
    parked: float = 300.0

    def after(self, failures: int) -> float:
        """Return the pause after a number of failed attempts in a row."""
        # More doublings would overflow a float.
        return min(self.initial * 2 ** min(failures - 1, _DOUBLINGS), self.maximum) if failures > 0 else 0.0

    def end(self, since: float, failures: int) -> float:
        """Return the time at which a pod that failed may be tried again.

        It is a full second, so that the most important of several pods that failed at about the same time comes
        first.
        """
        return math.floor(since + self.after(failures)) + 1.0


class Counter(Protocol):
    """Function that counts pods entering a part of the queue, with the change that caused it."""

    def __call__(self, queue: str, event: str) -> None: ...


class QueuedPod:
    """Pod in the queue, with the history of its attempts."""

    __slots__ = (
        "added", "attempts", "claims", "failures", "first_attempt", "info", "is_awaited", "is_error", "parked", "ready",
        "rejectors", "retries", "ticket", "was_flushed", "where",
    )  # fmt: skip

    def __init__(self, info: podinfo.PodInfo, now: float) -> None:
        self.info = info
        self.added = now
        """Time at which the pod entered its part of the queue. Of equally important pods, the first one goes first."""
        self.attempts = 0
        self.claims: list[cache.Key] = []
        """Claims under which the pod is indexed while it is parked."""
        self.failures = 0
        """Number of failed attempts that count for the next pause."""
        self.first_attempt: float | None = None
        self.rejectors: frozenset[str] = frozenset()
        self.is_awaited = False
        """True if a change would have helped the pod while a remedy was being applied for it."""
        self.is_error = False
        self.parked = 0.0
        self.ready = 0.0
        self.retries = 0
        """Number of decisions in a row that came too late."""
        self.ticket = 0
        self.was_flushed = False
        self.where = Where.OUT


_Heap = list[tuple[float, float, float, int, QueuedPod]]


class Queue:
    """All pods that wait for a node and are not being scheduled."""

    def __init__(
        self,
        plugins: Mapping[str, Sequence[hints.Hint]],
        pre_enqueue: Callable[[pod.Pod], verdict.Rejection | None],
        *,
        monotonic: Callable[[], float],
        pauses: Pauses | None = None,
        count: Counter | None = None,
        on_ready: Callable[[], None] = lambda: None,
        is_being_helped: Callable[[str], bool] = lambda uid: False,
    ) -> None:
        """``on_ready`` is called when there may be a pod to pop.

        ``is_being_helped`` returns True while a remedy is being applied for the pod of a uid.
        """
        self._pre_enqueue: Final = pre_enqueue
        self._monotonic: Final = monotonic
        self._pauses: Final = pauses or Pauses()
        self._count: Final[Counter] = count or (lambda queue, event: None)
        self._on_ready: Final = on_ready
        self._is_being_helped: Final = is_being_helped
        self._entries: Final[dict[cache.Key, QueuedPod]] = {}
        self._parked: Final[dict[cache.Key, QueuedPod]] = {}
        self._active: Final[_Heap] = []
        self._backing_off: Final[_Heap] = []
        self._failed: Final[_Heap] = []
        self._tickets: Final = itertools.count(1)
        self._by_plugin: Final[dict[str, dict[cache.Key, QueuedPod]]] = {}
        self._by_claim: Final[dict[cache.Key, dict[cache.Key, QueuedPod]]] = {}
        self._sizes: Final = dict.fromkeys(Where, 0)
        self._listeners: Final[dict[hints.Resource, list[tuple[str, hints.Hint]]]] = {}
        for plugin, offered in plugins.items():
            for hint in offered:
                self._listeners.setdefault(hint.resource, []).append((plugin, hint))

    def __len__(self) -> int:
        return len(self._entries)

    def size(self, where: Where) -> int:
        """Return the number of pods in a part of the queue."""
        return self._sizes[where]

    def rejected_by(self) -> Mapping[tuple[str, str], int]:
        """Return the number of parked pods that each plugin of each profile has rejected."""
        return collections.Counter(
            (plugin, entry.info.scheduler) for plugin, entries in self._by_plugin.items() for entry in entries.values()
        )

    def gated(self) -> Iterator[QueuedPod]:
        """Yield the pods that a PreEnqueue plugin rejects."""
        return (entry for entry in self._parked.values() if entry.where is Where.GATED)

    def find(self, key: cache.Key) -> QueuedPod | None:
        """Return a pod of the queue, or None."""
        return self._entries.get(key)

    # Adding and removing

    def add(self, waiting_pod: pod.Pod) -> None:
        """Add a pod that is new, or that an earlier scheduler left."""
        entry = QueuedPod(podinfo.PodInfo(waiting_pod), self._monotonic())
        old_entry = self._entries.get(entry.info.key)
        if old_entry is not None:
            self._take_out(old_entry)
        self._activate(entry, event="PodAdd")

    def update(self, old: pod.Pod, new: pod.Pod) -> None:
        """Update a waiting pod. The change may help the pod itself."""
        entry = self._entries.get(cache.key_of(new))
        if entry is None or entry.info.uid != new.metadata.uid:
            self.add(new)
            return
        entry.info = podinfo.PodInfo(new)
        if entry.info.key not in self._parked:
            return
        for change in changes.waiting_pod_changes(old, new):
            if self._helps(entry, change):
                self._wake(entry, event=change.label)
                return
        if entry.claims != _claims(entry.info):
            self._unindex(entry)
            self._index(entry)

    def delete(self, deleted: pod.Pod) -> None:
        """Remove a pod that is deleted or no longer waits."""
        entry = self._entries.get(cache.key_of(deleted))
        if entry is not None and entry.info.uid == deleted.metadata.uid:
            self._take_out(entry)

    def pop(self) -> QueuedPod | None:
        """Return the most important pod that may be tried now, or None."""
        self._flush()
        entry = _first(self._active) or _first(self._backing_off)
        if entry is None:
            return None
        self._begin(entry)
        return entry

    def take(self, key: cache.Key, uid: str) -> QueuedPod | None:
        """Return a pod to be tried together with a popped one, or None if it may not be tried now.

        The pod need not wait for the end of its pause, or for a change that helps it.
        """
        entry = self._entries.get(key)
        if entry is None or entry.info.uid != uid or entry.where is Where.GATED:
            return None
        self._begin(entry)
        return entry

    def _begin(self, entry: QueuedPod) -> None:
        self._take_out(entry)
        entry.attempts += 1
        if entry.first_attempt is None:
            entry.first_attempt = self._monotonic()

    def put_back(self, entry: QueuedPod, *, rejectors: frozenset[str], current: pod.Pod) -> None:
        """Put back a popped pod that could not be scheduled. Without rejectors, the attempt failed with an error.

        ``current`` is the newest state of the pod.
        """
        if entry.info.key in self._entries:
            # An update has added the pod again meanwhile.
            return
        now = self._monotonic()
        entry.info = podinfo.PodInfo(current)
        entry.rejectors = rejectors
        entry.is_error = not rejectors
        entry.retries = 0
        entry.failures += 1
        entry.added = now
        entry.was_flushed = False
        if entry.is_error:
            self._back_off(entry, event="ScheduleAttemptFailure")
        else:
            self._park(entry, Where.PARKED)
            self._count(Where.PARKED, "ScheduleAttemptFailure")

    def retry(self, entry: QueuedPod, *, current: pod.Pod) -> None:
        """Put back a popped pod to be tried again at once, because the decision came too late.

        After several retries in a row the pod pauses first. Otherwise two pods that always come too late for each other
        would never make progress. ``current`` is the newest state of the pod.
        """
        if entry.info.key in self._entries:
            return
        if entry.retries == _RETRIES_AT_ONCE:
            self.put_back(entry, rejectors=frozenset(), current=current)
            return
        entry.retries += 1
        entry.info = podinfo.PodInfo(current)
        self._activate(entry, event="ScheduleAttemptFailure")

    # Waking

    def wake(self, change: hints.Change, *, claim: cache.Key | None = None, but: str = "") -> None:
        """Move the pods that a change can help; with ``claim``, only those that refer to the claim.

        The pod with the uid ``but`` stays.
        """
        if not self._by_plugin or (claim is not None and claim not in self._by_claim):
            return
        narrowed = None if claim is None else self._by_claim[claim]
        for plugin, hint in self._listeners.get(change.resource, ()):
            if change.action not in hint.actions:
                continue
            rejected = self._by_plugin.get(plugin)
            if not rejected:
                continue
            candidates = rejected if narrowed is None else {k: e for k, e in narrowed.items() if k in rejected}
            for entry in list(candidates.values()):
                if (
                    entry.info.uid != but
                    and hint.helps(entry.info.pod, change.old, change.new)
                    and not self._is_still_gated(entry)
                ):
                    self._wake(entry, event=change.label)

    def remedied(self, key: cache.Key) -> None:
        """Note that a remedy for a pod was applied. The pod is tried again if a change has helped it meanwhile."""
        entry = self._entries.get(key)
        if entry is not None and entry.is_awaited and key in self._parked:
            self._move(entry, event="RemedyApplied")

    def activate(self, key: cache.Key) -> None:
        """Try a pod again now, even if it is parked or backs off."""
        entry = self._entries.get(key)
        if entry is not None and entry.where is not Where.ACTIVE:
            self._take_out(entry)
            self._activate(entry, event="ForceActivate")

    def next_time(self) -> float | None:
        """Return the time at which a pod becomes active without a change, or None."""
        times = [heap[0][0] for heap in (self._backing_off, self._failed) if heap]
        longest = next(iter(self._parked.values()), None)
        if longest is not None:
            times.append(longest.parked + self._pauses.parked)
        return min(times, default=None)

    def fail_again(self, times: int) -> None:
        """Count attempts at all parked pods that failed, after the pause of parked pods each: only for simulations."""
        for entry in self._parked.values():
            if entry.where is Where.PARKED:
                entry.added += times * self._pauses.parked
                entry.attempts += times
                entry.failures += times
            entry.parked += times * self._pauses.parked

    def _flush(self) -> None:
        now = self._monotonic()
        for heap in (self._backing_off, self._failed):
            while (entry := _first(heap)) is not None and entry.ready <= now:
                self._take_out(entry)
                self._activate(entry, event="BackoffComplete")
        while self._parked:
            longest = next(iter(self._parked.values()))
            if longest.parked + self._pauses.parked > now:
                break
            longest.was_flushed = True
            self._move(longest, event="UnschedulableTimeout")

    def _helps(self, entry: QueuedPod, change: hints.Change) -> bool:
        return any(
            plugin in entry.rejectors
            and change.action in hint.actions
            and hint.helps(entry.info.pod, change.old, change.new)
            for plugin, hint in self._listeners.get(change.resource, ())
        )

    def _is_still_gated(self, entry: QueuedPod) -> bool:
        """Return True if the same plugin still rejects a gated pod. Changes of other objects come often."""
        if entry.where is not Where.GATED:
            return False
        rejection = self._pre_enqueue(entry.info.pod)
        return rejection is not None and entry.rejectors == {rejection.plugin}

    def _wake(self, entry: QueuedPod, *, event: str) -> None:
        """Make a parked pod active that a change helps, unless the change is part of a remedy for the pod."""
        if self._is_being_helped(entry.info.uid):
            entry.is_awaited = True
        else:
            self._move(entry, event=event)

    def _move(self, entry: QueuedPod, *, event: str) -> None:
        """Make a parked pod active, at once or after the rest of its pause."""
        self._take_out(entry)
        entry.ready = self._pauses.end(entry.added, entry.failures)
        if entry.failures and entry.ready > self._monotonic():
            self._back_off(entry, event=event)
        else:
            self._activate(entry, event=event)

    # Parts of the queue

    def _activate(self, entry: QueuedPod, *, event: str) -> None:
        rejection = self._pre_enqueue(entry.info.pod)
        if rejection is not None:
            entry.rejectors = frozenset((rejection.plugin,))
            self._park(entry, Where.GATED)
            return
        self._put(entry, Where.ACTIVE)
        heapq.heappush(self._active, (-entry.info.priority, entry.added, 0.0, entry.ticket, entry))
        self._count(Where.ACTIVE, event)
        self._on_ready()

    def _back_off(self, entry: QueuedPod, *, event: str) -> None:
        entry.ready = self._pauses.end(entry.added, entry.failures)
        self._put(entry, Where.BACKOFF)
        heap = self._failed if entry.is_error else self._backing_off
        heapq.heappush(heap, (entry.ready, -entry.info.priority, entry.added, entry.ticket, entry))
        self._count(Where.BACKOFF, event)
        self._on_ready()

    def _park(self, entry: QueuedPod, where: Where) -> None:
        entry.is_awaited = False
        entry.parked = self._monotonic()
        self._put(entry, where)
        self._parked[entry.info.key] = entry
        self._index(entry)

    def _put(self, entry: QueuedPod, where: Where) -> None:
        entry.ticket = next(self._tickets)
        entry.where = where
        self._entries[entry.info.key] = entry
        self._sizes[where] += 1

    def _take_out(self, entry: QueuedPod) -> None:
        if entry.where is Where.OUT:
            return
        del self._entries[entry.info.key]
        self._sizes[entry.where] -= 1
        if self._parked.pop(entry.info.key, None) is not None:
            self._unindex(entry)
        # The ticket makes its entry in a heap stale.
        entry.ticket = 0
        entry.where = Where.OUT

    def _index(self, entry: QueuedPod) -> None:
        key = entry.info.key
        for plugin in entry.rejectors:
            self._by_plugin.setdefault(plugin, {})[key] = entry
        entry.claims = _claims(entry.info)
        for claim in entry.claims:
            self._by_claim.setdefault(claim, {})[key] = entry

    def _unindex(self, entry: QueuedPod) -> None:
        key = entry.info.key
        for plugin in entry.rejectors:
            _drop(self._by_plugin, plugin, key=key)
        for claim in entry.claims:
            _drop(self._by_claim, claim, key=key)


def _claims(info: podinfo.PodInfo) -> list[cache.Key]:
    return [cache.Key(info.key.namespace, name) for name in podclaims.names(info.pod)]


def _first(heap: _Heap) -> QueuedPod | None:
    """Return the first entry of a heap that is not stale, and drop the stale ones before it."""
    while heap:
        ticket, entry = heap[0][3], heap[0][4]
        if entry.ticket == ticket:
            return entry
        heapq.heappop(heap)
    return None


def _drop(index: dict[IndexT, dict[cache.Key, QueuedPod]], value: IndexT, *, key: cache.Key) -> None:
    if value in index and key in index[value]:
        del index[value][key]
        if not index[value]:
            del index[value]
