"""The contract of a store: versioned objects with compare-and-swap, consistent lists and watches.

The API server is written against ``Store``; ``memory.MemoryStore`` and ``sqlite.SqliteStore`` keep it, and one
test suite runs through both. A store belongs to one event loop and is called only from it.

Every write gets the next number of one global sequence, its revision. Reads return at once and see exactly
what is committed; a write returns once it is committed (and for SQLite, on disk). What fails raises a branch
of ``errors.StoreError`` and changes nothing.

Writes that belong together are one commit: all of them happen or none. Who reads the newest objects, or opens the
file after a crash, never meets a part of it; a watch is told of its first event only when the last one has happened
as well. The revisions in a commit are numbers like all others, though: a list at one of them, and a watcher that has
replayed its events only up to there, show the objects as if the writes had come one by one.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, Self

import msgspec

from drachma.store import record, write

FIRST_REVISION = 1
"""The revision of an empty store. It is not 0, because clients give resourceVersion "0" a meaning of its own."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much history is kept for watches and lists from the past; what comes first counts.

    A watcher that falls behind this history is cut with ``GoneError``. Watchers share the history, so a slow
    one costs no memory of its own.
    """

    history_events: int = 10_000
    history_bytes: int = 64 * 2**20


class Page(msgspec.Struct, frozen=True):
    """A part of a consistent list, in key order.

    ``after`` is what to pass for the next page (together with ``revision``), or None on the last one.
    ``remaining`` counts what later pages hold; with a filter nobody knows, and it is None unless there is
    no later page.
    """

    records: Sequence[record.Record]
    revision: int
    after: record.Key | None
    remaining: int | None


class Watch(Protocol):
    """A subscription to the events of one resource, in revision order, without gaps or repeats.

    Iterate over it, or call ``batch`` or ``ready`` to handle many events at once. It ends when it or the store is
    closed. Whoever opens a watch closes it, best by ``with``. One task at a time may wait on it; cancelling that task
    loses no event.
    """

    @property
    def revision(self) -> int:
        """Every event up to this revision has been handed out; fit for a bookmark, or to resume from."""

    def ready(self) -> Sequence[record.Event]:
        """The next events where some are there already; whoever gets none waits for a batch, which says why."""

    async def batch(self) -> Sequence[record.Event]:
        """The next events, at least one; empty once closed.

        Raises:
            errors.GoneError: the history this watcher still needs is compacted.
        """

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> record.Event: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None: ...


class Store(Protocol):
    @property
    def revision(self) -> int:
        """The revision of the newest committed write."""

    @property
    def compacted(self) -> int:
        """The oldest revision that can still be listed, or watched from."""

    @property
    def fault(self) -> str:
        """Reason why writes fail, such as "disk full"; empty while they succeed.

        While the disk is full, deletes succeed, and so do updates that make no object larger.
        """

    def get(self, key: record.Key) -> record.Record | None:
        """The committed object under ``key``."""

    def changed(self, resource: str) -> int:
        """The revision of the newest committed write of a resource that this process knows of, 0 for none.

        What was listed at this revision or a later one is still so.
        """

    def list(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        revision: int | None = None,
        limit: int | None = None,
        after: record.Key | None = None,
        where: Callable[[record.Record], bool] | None = None,
    ) -> Page:
        """Objects of a resource in key order, as they were at one revision (the newest unless told).

        Order is that of ``namespace/name`` as text. A limit without ``where`` makes the cost linear in the
        page and in the number of the resource's events since ``revision``, not in the size of the collection.

        Raises:
            errors.GoneError: ``revision`` is compacted.
            errors.FutureRevisionError: ``revision`` has not been reached.
        """

    async def commit(self, writes: Sequence[write.Write]) -> Sequence[record.Record]:
        """Does several writes of different objects, all or none; their records come in the order of ``writes``.

        In that order they get revisions that follow each other, with no other write's in between. Where one does
        not hold, nothing is written and no revision is used; the error is about the first such write and carries
        its key. ``create``, ``update`` and ``delete`` are commits of a single write.

        A key comes once: a second write of it would count on a revision that is not given out yet.

        Raises:
            errors.PreconditionError: the branch of it that the write alone would raise.
            errors.WriteFailedError, errors.StoreClosedError,
            errors.InvalidValueError: a key or body that cannot be stored, a key that comes twice, no write at all,
                or more of them than one batch takes.
        """

    async def create(self, key: record.Key, draft: record.Draft, *, uid: str = "") -> record.Record:
        """Adds an object; its uid stays with it until it is deleted.

        Raises:
            errors.AlreadyExistsError, errors.WriteFailedError, errors.StoreClosedError,
            errors.InvalidValueError: a key or body that cannot be stored.
        """

    async def update(self, key: record.Key, draft: record.Draft, *, revision: int) -> record.Record:
        """Replaces an object whose newest revision is ``revision``.

        Raises:
            errors.NotFoundError, errors.ConflictError, errors.WriteFailedError, errors.StoreClosedError,
            errors.InvalidValueError: a body that cannot be stored.
        """

    async def delete(
        self,
        key: record.Key,
        *,
        revision: int | None = None,
        uid: str | None = None,
        draft: Callable[[record.Record, int], record.Body] | None = None,
    ) -> record.Record:
        """Removes an object, if it still has this revision and uid where given.

        Returns the last content at the revision of the deletion; ``draft`` makes it from the object that is
        removed and that revision, without ``draft`` the content stays as it was.

        Raises:
            errors.NotFoundError, errors.ConflictError, errors.WriteFailedError, errors.StoreClosedError.
        """

    def watch(self, resource: str, namespace: str | None = None, *, after: int) -> Watch:
        """Events with a revision above ``after``. A revision not reached yet skips the events up to it.

        Raises:
            errors.GoneError: ``after`` is compacted.
            errors.StoreClosedError: the store is closed.
        """

    async def compact(self, revision: int) -> None:
        """Forgets history before ``revision``; objects stay. An older or equal revision than before is fine.

        Raises:
            errors.FutureRevisionError, errors.WriteFailedError, errors.StoreClosedError.
        """

    async def close(self) -> None:
        """Finishes accepted writes, ends watches and lets go of files. Reads still work; writes do not."""
