"""The queue of pods that want a node: active, backing off after a failed attempt, or parked until something helps.

Informers add pods and report changes; the scheduler pops the most important pod, and puts it back if it did not fit.
A parked pod is woken only by changes that a plugin which rejected it says can help (queueing hints), or after five
minutes. Before it becomes active, PreEnqueue has a say: a pod that has to wait for its claims or gates never takes up
the scheduler's time. A pause after a failed attempt is cut short when there is nothing else to do, unless the attempt
failed with an error.

Time is passed in; nothing here waits.
"""

from __future__ import annotations

import enum
import heapq
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
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
"""How often what was decided for a pod may come too late before it pauses."""


class Where(enum.StrEnum):
    """The part of the queue that a pod is in."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    PARKED = "unschedulable"
    GATED = "gated"
    """Parked, and never tried: PreEnqueue keeps it back."""
    OUT = "out"


class Pauses(msgspec.Struct, frozen=True, kw_only=True):
    """How long pods wait, in seconds."""

    initial: float = 1.0
    maximum: float = 10.0
    parked: float = 300.0

    def after(self, failures: int) -> float:
        """The pause after so many failed attempts in a row."""
        # Beyond so many doublings a number would not be one that a float can hold.
        return min(self.initial * 2 ** min(failures - 1, _DOUBLINGS), self.maximum) if failures > 0 else 0.0

    def end(self, since: float, failures: int) -> float:
        """When a pod that failed may be tried again.

        That is at the next full second, so that of pods that failed at about the same time the most important is first.
        """
        return math.floor(since + self.after(failures)) + 1.0


class Counter(Protocol):
    """Hears of every pod that enters a part of the queue, and of the change that brought it there."""

    def __call__(self, queue: str, event: str) -> None: ...


class QueuedPod:
    """A pod and what became of it so far."""

    __slots__ = (
        "added", "attempts", "claims", "failures", "first_attempt", "info", "is_error", "parked", "ready", "rejectors",
        "retries", "ticket", "was_flushed", "where",
    )  # fmt: skip

    def __init__(self, info: podinfo.PodInfo, now: float) -> None:
        self.info = info
        self.added = now
        """When it came to where it is; among equally important pods the first goes first."""
        self.attempts = 0
        self.claims: list[cache.Key] = []
        """The claims under which it is found while it is parked."""
        self.failures = 0
        """Failed attempts that count for the next pause."""
        self.first_attempt: float | None = None
        self.rejectors: frozenset[str] = frozenset()
        self.is_error = False
        self.parked = 0.0
        self.ready = 0.0
        self.retries = 0
        """How often in a row what was decided for it came too late."""
        self.ticket = 0
        self.was_flushed = False
        self.where = Where.OUT


_Heap = list[tuple[float, float, float, int, QueuedPod]]


class Queue:
    """All pods that want a node and are not being scheduled at the moment."""

    def __init__(
        self,
        plugins: Mapping[str, Sequence[hints.Hint]],
        pre_enqueue: Callable[[pod.Pod], verdict.Rejection | None],
        *,
        monotonic: Callable[[], float],
        pauses: Pauses | None = None,
        count: Counter | None = None,
        wakened: Callable[[], None] = lambda: None,
    ) -> None:
        """``wakened`` is called when there may be a pod to pop."""
        self._pre_enqueue: Final = pre_enqueue
        self._monotonic: Final = monotonic
        self._pauses: Final = pauses or Pauses()
        self._counted: Final[Counter] = count or (lambda queue, event: None)
        self._wakened: Final = wakened
        self._entries: Final[dict[cache.Key, QueuedPod]] = {}
        self._parked: Final[dict[cache.Key, QueuedPod]] = {}
        self._active: Final[_Heap] = []
        self._resting: Final[_Heap] = []
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
        """How many pods are in a part of the queue."""
        return self._sizes[where]

    def rejected_by(self) -> Mapping[str, int]:
        """How many parked pods each plugin has rejected."""
        return {plugin: len(entries) for plugin, entries in self._by_plugin.items()}

    def find(self, key: cache.Key) -> QueuedPod | None:
        """A pod of the queue."""
        return self._entries.get(key)

    # In and out

    def add(self, waiting: pod.Pod) -> None:
        """Take in a pod that is new, or that an older scheduler left."""
        entry = QueuedPod(podinfo.PodInfo(waiting), self._monotonic())
        known = self._entries.get(entry.info.key)
        if known is not None:
            self._take_out(known)
        self._activate(entry, event="PodAdd")

    def update(self, old: pod.Pod, new: pod.Pod) -> None:
        """Take in a new state of a waiting pod; it may help it."""
        entry = self._entries.get(cache.key_of(new))
        if entry is None or entry.info.uid != new.metadata.uid:
            self.add(new)
            return
        entry.info = podinfo.PodInfo(new)
        if entry.info.key not in self._parked:
            return
        for change in changes.of_waiting_pod(old, new):
            if self._helps(entry, change):
                self._move(entry, event=change.label)
                return
        if entry.claims != _claims(entry.info):
            self._unindex(entry)
            self._index(entry)

    def delete(self, gone: pod.Pod) -> None:
        """Forget a pod that is gone, or no longer waits."""
        entry = self._entries.get(cache.key_of(gone))
        if entry is not None and entry.info.uid == gone.metadata.uid:
            self._take_out(entry)

    def pop(self) -> QueuedPod | None:
        """The most important pod that may be tried now; None if there is none."""
        self._flush()
        entry = _first(self._active) or _first(self._resting)
        if entry is None:
            return None
        self._begin(entry)
        return entry

    def take(self, key: cache.Key, uid: str) -> QueuedPod | None:
        """A pod that is to be tried together with another one that was popped; None if it may not be tried now.

        It need not wait for the end of its pause, or for something that helps it.
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
        """Take back a pod that was popped and could not be scheduled; without rejectors something went wrong.

        ``current`` is its newest state.
        """
        if entry.info.key in self._entries:
            # It came in again meanwhile, by an update.
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
            self._rest(entry, event="ScheduleAttemptFailure")
        else:
            self._park(entry, Where.PARKED)
            self._counted(Where.PARKED, "ScheduleAttemptFailure")

    def retry(self, entry: QueuedPod, *, current: pod.Pod) -> None:
        """Take back a pod that was popped, to be tried again at once: what was decided for it came too late.

        Where that happens again and again, it pauses first: of two that always come too late for each other, because of
        what each has given up already, neither would ever get anywhere. ``current`` is its newest state.
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
        """Move the pods that a change can help; with ``claim``, only those that refer to it.

        ``but`` is the uid of a pod that stays where it is.
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
                    self._move(entry, event=change.label)

    def activate(self, key: cache.Key) -> None:
        """Try a pod again now, whatever kept it back."""
        entry = self._entries.get(key)
        if entry is not None and entry.where is not Where.ACTIVE:
            self._take_out(entry)
            self._activate(entry, event="ForceActivate")

    def next_time(self) -> float | None:
        """When to look again although nothing happened."""
        times = [heap[0][0] for heap in (self._resting, self._failed) if heap]
        longest = next(iter(self._parked.values()), None)
        if longest is not None:
            times.append(longest.parked + self._pauses.parked)
        return min(times, default=None)

    def _flush(self) -> None:
        now = self._monotonic()
        for heap in (self._resting, self._failed):
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
        """Whether the same plugin would keep a pod back again: news of other objects come by the dozen."""
        if entry.where is not Where.GATED:
            return False
        rejection = self._pre_enqueue(entry.info.pod)
        return rejection is not None and entry.rejectors == {rejection.plugin}

    def _move(self, entry: QueuedPod, *, event: str) -> None:
        """Make a parked pod active, at once or after what is left of its pause."""
        self._take_out(entry)
        entry.ready = self._pauses.end(entry.added, entry.failures)
        if entry.failures and entry.ready > self._monotonic():
            self._rest(entry, event=event)
        else:
            self._activate(entry, event=event)

    # Where pods are

    def _activate(self, entry: QueuedPod, *, event: str) -> None:
        rejection = self._pre_enqueue(entry.info.pod)
        if rejection is not None:
            entry.rejectors = frozenset((rejection.plugin,))
            self._park(entry, Where.GATED)
            return
        self._put(entry, Where.ACTIVE)
        heapq.heappush(self._active, (-entry.info.priority, entry.added, 0.0, entry.ticket, entry))
        self._counted(Where.ACTIVE, event)
        self._wakened()

    def _rest(self, entry: QueuedPod, *, event: str) -> None:
        entry.ready = self._pauses.end(entry.added, entry.failures)
        self._put(entry, Where.BACKOFF)
        heap = self._failed if entry.is_error else self._resting
        heapq.heappush(heap, (entry.ready, -entry.info.priority, entry.added, entry.ticket, entry))
        self._counted(Where.BACKOFF, event)
        self._wakened()

    def _park(self, entry: QueuedPod, where: Where) -> None:
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
        # Its place in a heap is recognised as stale by the ticket.
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


def _claims(of: podinfo.PodInfo) -> list[cache.Key]:
    return [cache.Key(of.key.namespace, name) for name in podclaims.names(of.pod)]


def _first(heap: _Heap) -> QueuedPod | None:
    """The first entry of a heap that is still meant; stale ones before it are dropped."""
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
