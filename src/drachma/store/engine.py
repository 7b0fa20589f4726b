"""The engine of both stores: decides commits, groups them into batches, and publishes them once they are durable.

It runs in one event loop and needs no locks. A commit is one or several writes of different objects. It is decided as a
whole against the committed state and the commits that wait for the journal. If all its writes hold, they get
consecutive revisions and join the next batch together. While the journal writes one batch, the next one fills. Writes
become visible only when the journal has confirmed them, all those of a batch between two turns of the event loop. If a
batch fails, all waiting commits were decided on a state that never came, so all of them fail and their revisions are
used again.
"""

import asyncio
import bisect
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Self

import msgspec

from drachma import errors
from drachma.store import journal, protocol, record, room, state, watch, write

MAX_WRITES = 1000
"""Writes in one batch, and so in one commit. A larger batch saves no measurable time and delays its first write."""

_COMPACTION_STEP = 1000
"""Events that one batch may compact, so that compacting a long history does not delay writes."""


class _Commit(msgspec.Struct, eq=False):
    """Decided writes that the journal has not confirmed yet."""

    events: Sequence[record.Event]
    acknowledged: asyncio.Future[Sequence[record.Event]]
    # Other commits wait on this and not on the writer's future, which may be cancelled.
    onlookers: list[asyncio.Future[None]] = []


class Engine:
    """A :class:`protocol.Store` on top of a journal."""

    def __init__(self, committed: state.State, log: journal.Journal, *, limits: protocol.Limits) -> None:
        self._state = committed
        # Every call reads the state several times, so these are the state's own functions.
        self.get: Final = committed.get
        self.changed: Final = committed.changed
        self._hub = watch.Hub(committed)
        self._journal = log
        self._limits = limits
        self._assigned = committed.revision
        # The newest event of each key that waits for the journal, and its commit.
        self._waiting: dict[record.Key, tuple[record.Event, _Commit]] = {}
        self._queue: list[_Commit] = []
        self._in_flight: journal.Batch | None = None
        self._committing: list[_Commit] = []
        self._flush_planned = False
        self._looked_at = 0
        self._due = 0.0
        self._compactions: list[tuple[int, asyncio.Future[None]]] = []
        self._idle: asyncio.Event = asyncio.Event()
        self._idle.set()
        self._closing: asyncio.Task[None] | None = None
        self._room = room.Room(log)

    @property
    def fault(self) -> str:
        return self._room.fault

    @property
    def revision(self) -> int:
        return self._state.revision

    @property
    def compacted(self) -> int:
        return self._state.compacted

    @property
    def resources(self) -> Sequence[str]:
        """Return all resources that have or had objects, in order."""
        return self._state.resources

    def list(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        revision: int | None = None,
        limit: int | None = None,
        after: record.Key | None = None,
        where: Callable[[record.Record], bool] | None = None,
    ) -> protocol.Page:
        return self._state.page(resource, namespace, revision=revision, limit=limit, after=after, where=where)

    def watch(self, resource: str, namespace: str | None = None, *, after: int) -> watch.Subscription:
        return self._hub.watch(resource, namespace, after=after)

    async def commit(self, writes: Sequence[write.Write]) -> Sequence[record.Record]:
        # A copy, because the caller's sequence may change while the commit waits for another one.
        writes = tuple(writes)
        _check(writes)
        return [event.record for event in await self._accept(writes)]

    async def create(self, key: record.Key, draft: record.Draft, *, uid: str = "") -> record.Record:
        return (await self._accept((write.Create(key, draft, uid),)))[0].record

    async def update(self, key: record.Key, draft: record.Draft, *, revision: int) -> record.Record:
        return (await self._accept((write.Update(key, draft, revision),)))[0].record

    async def delete(
        self,
        key: record.Key,
        *,
        revision: int | None = None,
        uid: str | None = None,
        draft: Callable[[record.Record, int], record.Body] | None = None,
    ) -> record.Record:
        return (await self._accept((write.Delete(key, revision, uid, draft),)))[0].record

    async def compact(self, revision: int) -> None:
        if revision > self._state.revision:
            raise errors.FutureRevisionError(
                f"compaction: revision {revision} has not been reached, the newest is {self._state.revision}"
            )
        if self._closing is not None:
            raise _closed_error("compaction")
        if revision > self._state.compacted:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._compactions.append((revision, done))
            self._plan_flush()
            await done

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        # Shielded, so that a cancelled caller does not leave the store half closed for the others.
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _close(self) -> None:
        await self._idle.wait()
        self._hub.close()
        await self._journal.close()

    def _accept(self, writes: Sequence[write.Write]) -> Awaitable[Sequence[record.Event]]:
        """Decide a commit now if possible; the result is done once the commit is written or has failed."""
        if self._room.is_full:
            return self._accept_when_full(writes)
        outcome = self._decide(writes)
        return outcome if isinstance(outcome, asyncio.Future) else self._accept_after(outcome, writes)

    async def _accept_when_full(self, writes: Sequence[write.Write]) -> Sequence[record.Event]:
        """Decide a commit after checking whether the disk is still full."""
        await self._room.regain()
        outcome = self._decide(writes)
        return await (outcome if isinstance(outcome, asyncio.Future) else self._accept_after(outcome, writes))

    async def _accept_after(self, rival: _Commit, writes: Sequence[write.Write]) -> Sequence[record.Event]:
        """Decide a commit after another one is written or has failed.

        A write that an uncommitted write would refuse waits here first, because a refusal, like a read, depends on
        committed state only.
        """
        while True:
            onlooker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            rival.onlookers.append(onlooker)
            await onlooker
            outcome = self._decide(writes)
            if isinstance(outcome, asyncio.Future):
                return await outcome
            rival = outcome

    def _decide(self, writes: Sequence[write.Write]) -> asyncio.Future[Sequence[record.Event]] | _Commit:
        """Put writes that hold into the next batch; if one may not hold, return the commit that decides about it."""
        if self._closing is not None:
            raise _closed_error(_subject(writes[0].key, len(writes)))
        grounds = []
        for item in writes:
            pending_event = self._waiting.get(item.key)
            current = self._state.get(item.key) if pending_event is None else pending_event[0].left
            refusal = item.refusal(current)
            if refusal is not None:
                if pending_event is None:
                    raise refusal
                return pending_event[1]
            grounds.append((item, current))
        # Drafts are called only after all writes hold, and nothing changes until the last of them has returned.
        events = []
        revision = self._assigned
        for item, current in grounds:
            revision += 1
            events.append(item.event(current, revision))
        self._room.check(events)
        return self._submit(events)

    def _submit(self, events: Sequence[record.Event]) -> asyncio.Future[Sequence[record.Event]]:
        loop = asyncio.get_running_loop()
        commit = _Commit(events, loop.create_future())
        for event in events:
            self._waiting[event.record.key] = (event, commit)
        self._assigned += len(events)
        patience = self._journal.patience
        if patience and not self._queue:
            self._due = loop.time() + patience
        self._queue.append(commit)
        self._plan_flush()
        return commit.acknowledged

    def _plan_flush(self) -> None:
        """Schedule a flush, so that writes of one or several turns of the event loop share a batch."""
        if self._in_flight is None and not self._flush_planned:
            self._idle.clear()
            self._flush_planned = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_planned = False
        if self._journal.patience and self._is_filling():
            self._plan_flush()
            return
        compaction = self._due_compaction()
        if not self._queue and compaction is None:
            self._idle.set()
            return
        end = self._batch_end()
        self._committing, self._queue = self._queue[:end], self._queue[end:]
        self._looked_at = 0
        events: list[record.Event] = []
        for commit in self._committing:
            events += commit.events
        self._in_flight = journal.Batch(events, compaction)
        self._journal.commit(self._in_flight, self._finish)

    def _count_queued(self) -> int:
        """Return the number of writes that wait for their batch; their revisions are consecutive."""
        return self._assigned - self._queue[0].events[0].record.revision + 1 if self._queue else 0

    def _batch_end(self) -> int:
        """Return the number of queued commits that fit into one batch; a commit is never split."""
        if self._count_queued() <= MAX_WRITES:
            return len(self._queue)
        end = self._queue[0].events[0].record.revision + MAX_WRITES
        return bisect.bisect_left(self._queue, end, key=lambda commit: commit.events[-1].record.revision)

    def _is_filling(self) -> bool:
        """Return True if the last turn of the event loop brought more writes, and the first of them can wait.

        A lone commit waits for one turn in vain, which takes microseconds. With many writers, separate batches would
        cost more than all other work for their writes.
        """
        count = self._count_queued()
        has_grown, self._looked_at = count > self._looked_at, count
        return has_grown and count < MAX_WRITES and asyncio.get_running_loop().time() < self._due

    def _due_compaction(self) -> state.Compaction | None:
        committed = self._state
        excess = committed.excess(self._limits, most=_COMPACTION_STEP)
        if self._room.is_full:
            # History takes room that is needed to delete objects.
            excess = min(committed.revision - committed.compacted, _COMPACTION_STEP) if self._queue else 0
        if not excess and not self._compactions:
            return None
        requested = max((revision for revision, _ in self._compactions), default=0)
        target = max(committed.compacted + excess, min(requested, committed.compacted + _COMPACTION_STEP))
        return committed.plan_compaction(target) if target > committed.compacted else None

    def _finish(self, error: errors.WriteFailedError | None) -> None:
        batch, commits = self._in_flight, self._committing
        assert batch is not None
        self._in_flight, self._committing = None, []
        self._room.note(error)
        if error is not None:
            self._fail(commits + self._queue, error)
            return
        if batch.compaction is not None:
            self._hub.compact(batch.compaction)
        if self._compactions:
            self._finish_compactions()
        # The journal gets its next batch first, and writes it while this one is published.
        self._flush()
        self._hub.publish(batch.events)
        for commit in commits:
            for event in commit.events:
                key = event.record.key
                if self._waiting[key][1] is commit:
                    del self._waiting[key]
            if not commit.acknowledged.done():
                commit.acknowledged.set_result(commit.events)
            if commit.onlookers:
                _release(commit)

    def _finish_compactions(self) -> None:
        unfinished = []
        for revision, done in self._compactions:
            if revision > self._state.compacted:
                unfinished.append((revision, done))
            elif not done.done():
                done.set_result(None)
        self._compactions = unfinished

    def _fail(self, commits: Sequence[_Commit], error: errors.WriteFailedError) -> None:
        self._queue = []
        self._waiting.clear()
        self._assigned = self._state.revision
        for commit in commits:
            if not commit.acknowledged.done():
                subject = _subject(commit.events[0].record.key, len(commit.events))
                commit.acknowledged.set_exception(type(error)(f"{subject}: not written: {error}"))
            _release(commit)
        compactions, self._compactions = self._compactions, []
        for revision, done in compactions:
            if not done.done():
                done.set_exception(type(error)(f"compaction to {revision}: not done: {error}"))
        self._idle.set()


def _check(writes: Sequence[write.Write]) -> None:
    """Raise an error for a commit that no store can accept, whatever it contains."""
    if not writes:
        raise errors.InvalidValueError("commit: there is no write in it")
    if len(writes) > MAX_WRITES:
        raise errors.InvalidValueError(f"commit: {len(writes)} writes, more than the limit of {MAX_WRITES}")
    keys: set[record.Key] = set()
    for item in writes:
        if item.key in keys:
            raise errors.InvalidValueError(f"{item.key}: written twice in one commit")
        keys.add(item.key)


def _closed_error(subject: str) -> errors.StoreClosedError:
    return errors.StoreClosedError(f"{subject}: the store is closed")


def _subject(first: record.Key, count: int) -> str:
    """Return the beginning of messages about a whole commit."""
    return str(first) if count == 1 else f"{first} and {count - 1} more"


def _release(commit: _Commit) -> None:
    for onlooker in commit.onlookers:
        if not onlooker.done():
            onlooker.set_result(None)
