"""The engine of both stores: decides writes, groups them, and publishes them once they are committed.

It runs in one event loop and needs no locks. A write is decided against the committed state and the writes
that wait for their commit, gets its revision, and joins the next batch; while the journal commits one batch,
the next one fills. Only a commit makes a write visible. When a commit fails, every waiting write was decided
on ground that no longer holds, so all of them fail and their revisions are given out anew.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Self

import msgspec

from drachma import errors
from drachma.store import journal, protocol, record, state, watch

MAX_BODY = 16 * 2**20
"""Bytes of one object. Upstream's stops at 1.5 MB; this only keeps one write from stalling all others."""

_GROUP = 1000
"""Writes in one batch. A bigger one saves no measurable time and makes its first write wait."""

_COMPACTION_STEP = 1000
"""Events that one batch may forget, so that compacting a long history does not hold up writes."""


class _Write:
    """A decided write that is not committed yet."""

    __slots__ = ("acknowledged", "event", "onlookers")

    def __init__(self, event: record.Event, acknowledged: asyncio.Future[record.Record]) -> None:
        self.event = event
        self.acknowledged = acknowledged
        # Others wait apart from the writer, who may be cancelled while the write goes on.
        self.onlookers: list[asyncio.Future[None]] = []

    @property
    def left(self) -> record.Record | None:
        """The object as the next write of it finds it."""
        return None if self.event.change is record.Change.DELETED else self.event.record


class Engine:
    """A store as ``protocol.Store`` describes it, on top of a journal."""

    def __init__(self, committed: state.State, log: journal.Journal, *, limits: protocol.Limits) -> None:
        self._state = committed
        self._hub = watch.Hub(committed)
        self._journal = log
        self._limits = limits
        self._assigned = committed.revision
        self._newest: dict[record.Key, _Write] = {}
        self._queue: list[_Write] = []
        self._in_flight: journal.Batch | None = None
        self._committing: list[_Write] = []
        self._flush_planned = False
        self._looked_at = 0
        self._due = 0.0
        self._compactions: list[tuple[int, asyncio.Future[None]]] = []
        self._idle: asyncio.Event = asyncio.Event()
        self._idle.set()
        self._closing: asyncio.Task[None] | None = None

    @property
    def revision(self) -> int:
        return self._state.revision

    @property
    def compacted(self) -> int:
        return self._state.compacted

    def get(self, key: record.Key) -> record.Record | None:
        return self._state.get(key)

    def changed(self, resource: str) -> int:
        return self._state.changed(resource)

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

    async def create(self, key: record.Key, draft: record.Draft, *, uid: str = "") -> record.Record:
        _check_key(key, uid)
        while True:
            if self._closing is not None:
                raise _closed(key)
            waiting = self._newest.get(key)
            if (self._state.get(key) if waiting is None else waiting.left) is None:
                break
            if waiting is None:
                raise errors.AlreadyExistsError(f"{key}: already exists")
            await self._settled(waiting)
        revision = self._assigned + 1
        made = _record(key, draft(revision), uid=uid, create_revision=revision, revision=revision)
        return await self._submit(record.Event(record.Change.ADDED, made, None))

    async def update(self, key: record.Key, draft: record.Draft, *, revision: int) -> record.Record:
        while True:
            if self._closing is not None:
                raise _closed(key)
            waiting = self._newest.get(key)
            current = self._state.get(key) if waiting is None else waiting.left
            if current is not None and current.revision == revision:
                break
            if waiting is None:
                raise _unmet(key, current, revision=revision, uid=None)
            await self._settled(waiting)
        made = _record(
            key,
            draft(self._assigned + 1),
            uid=current.uid,
            create_revision=current.create_revision,
            revision=self._assigned + 1,
        )
        return await self._submit(record.Event(record.Change.MODIFIED, made, current))

    async def delete(
        self,
        key: record.Key,
        *,
        revision: int | None = None,
        uid: str | None = None,
        draft: Callable[[record.Record, int], record.Body] | None = None,
    ) -> record.Record:
        while True:
            if self._closing is not None:
                raise _closed(key)
            waiting = self._newest.get(key)
            current = self._state.get(key) if waiting is None else waiting.left
            if current is not None and revision in (None, current.revision) and uid in (None, current.uid):
                break
            if waiting is None:
                raise _unmet(key, current, revision=revision, uid=uid)
            await self._settled(waiting)
        at = self._assigned + 1
        body = record.Body(current.data) if draft is None else draft(current, at)
        last = _record(key, body, uid=current.uid, create_revision=current.create_revision, revision=at)
        return await self._submit(record.Event(record.Change.DELETED, last, current))

    async def compact(self, revision: int) -> None:
        if revision > self._state.revision:
            raise errors.FutureRevisionError(
                f"compaction: revision {revision} has not been reached, the newest is {self._state.revision}"
            )
        if self._closing is not None:
            raise _closed("compaction")
        if revision > self._state.compacted:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._compactions.append((revision, done))
            self._plan_flush()
            await done

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        # Shielded, so that one caller who gives up does not leave the store half closed for the others.
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _close(self) -> None:
        await self._idle.wait()
        self._hub.close()
        await self._journal.close()

    async def _settled(self, write: _Write) -> None:
        """Waits until a write is committed or failed.

        A write that would be refused because of another's uncommitted write waits here first: a refusal,
        like a read, tells only of what is committed.
        """
        onlooker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        write.onlookers.append(onlooker)
        await onlooker

    def _submit(self, event: record.Event) -> asyncio.Future[record.Record]:
        """Puts a write into the next batch; what is returned is done once it is committed or failed."""
        loop = asyncio.get_running_loop()
        acknowledged: asyncio.Future[record.Record] = loop.create_future()
        write = _Write(event, acknowledged)
        self._assigned = event.record.revision
        self._newest[event.record.key] = write
        patience = self._journal.patience
        if patience and not self._queue:
            self._due = loop.time() + patience
        self._queue.append(write)
        self._plan_flush()
        return acknowledged

    def _plan_flush(self) -> None:
        """Flushes soon but not now, so that writes of one turn of the event loop, or of several, share a batch."""
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
        self._committing, self._queue = self._queue[:_GROUP], self._queue[_GROUP:]
        self._looked_at = 0
        self._in_flight = journal.Batch([write.event for write in self._committing], compaction)
        self._journal.commit(self._in_flight, self._finish)

    def _is_filling(self) -> bool:
        """Whether the last turn of the event loop brought more writes, and the first of them can wait for the next.

        A lone write waits for one turn in vain, which takes microseconds. Where many come, a commit for each few
        would cost more than all the rest that is done for them.
        """
        count = len(self._queue)
        has_grown, self._looked_at = count > self._looked_at, count
        return has_grown and count < _GROUP and asyncio.get_running_loop().time() < self._due

    def _due_compaction(self) -> state.Compaction | None:
        committed = self._state
        excess = committed.excess(self._limits, most=_COMPACTION_STEP)
        if not excess and not self._compactions:
            return None
        asked = max((revision for revision, _ in self._compactions), default=0)
        target = max(committed.compacted + excess, min(asked, committed.compacted + _COMPACTION_STEP))
        return committed.plan_compaction(target) if target > committed.compacted else None

    def _finish(self, error: errors.WriteFailedError | None) -> None:
        batch, writes = self._in_flight, self._committing
        assert batch is not None
        self._in_flight, self._committing = None, []
        if error is not None:
            self._fail(writes + self._queue, error)
            return
        if batch.compaction is not None:
            self._hub.compact(batch.compaction)
        if self._compactions:
            self._finish_compactions()
        # The journal gets its next batch first and works on it while this one is published.
        self._flush()
        self._hub.publish(batch.events)
        for write in writes:
            key = write.event.record.key
            if self._newest[key] is write:
                del self._newest[key]
            if not write.acknowledged.done():
                write.acknowledged.set_result(write.event.record)
            if write.onlookers:
                _release(write)

    def _finish_compactions(self) -> None:
        left = []
        for revision, done in self._compactions:
            if revision > self._state.compacted:
                left.append((revision, done))
            elif not done.done():
                done.set_result(None)
        self._compactions = left

    def _fail(self, writes: Sequence[_Write], error: errors.WriteFailedError) -> None:
        self._queue = []
        self._newest.clear()
        self._assigned = self._state.revision
        for write in writes:
            if not write.acknowledged.done():
                write.acknowledged.set_exception(type(error)(f"{write.event.record.key}: not written: {error}"))
            _release(write)
        compactions, self._compactions = self._compactions, []
        for revision, done in compactions:
            if not done.done():
                done.set_exception(type(error)(f"compaction to {revision}: not done: {error}"))
        self._idle.set()


def _closed(subject: object) -> errors.StoreClosedError:
    return errors.StoreClosedError(f"{subject}: the store is closed")


def _release(write: _Write) -> None:
    for onlooker in write.onlookers:
        if not onlooker.done():
            onlooker.set_result(None)


def _check_key(key: record.Key, uid: str) -> None:
    """Refuses what would break the order of lists, or fail in the journal and take other writes along."""
    if not key.resource or not key.name:
        raise errors.InvalidValueError(f"key {tuple(key)!r}: resource and name must not be empty")
    if "/" in key.namespace or "/" in key.name:
        raise errors.InvalidValueError(f"key {tuple(key)!r}: namespace and name must not contain a slash")
    try:
        "".join((*key, uid)).encode()
    except UnicodeEncodeError as error:
        raise errors.InvalidValueError(f"key {tuple(key)!r}, uid {uid!r}: not UTF-8: {error}") from error


def _record(key: record.Key, body: record.Body, *, uid: str, create_revision: int, revision: int) -> record.Record:
    if not isinstance(body.data, bytes):
        raise errors.InvalidValueError(f"{key}: the body must be bytes, not {type(body.data).__name__}")
    if len(body.data) > MAX_BODY:
        raise errors.InvalidValueError(f"{key}: the body has {len(body.data)} bytes, more than the limit of {MAX_BODY}")
    made = record.Record(key, uid, create_revision, revision, body.data, body.value)
    if body.value is not msgspec.UNSET:
        record.DECODED.add(made)
    return made


def _unmet(
    key: record.Key, current: record.Record | None, *, revision: int | None, uid: str | None
) -> errors.StoreError:
    if current is None:
        return errors.NotFoundError(f"{key}: not found")
    if uid not in (None, current.uid):
        return errors.ConflictError(f"{key}: precondition failed: uid is {current.uid!r}, expected {uid!r}")
    return errors.ConflictError(f"{key}: precondition failed: revision is {current.revision}, expected {revision}")
