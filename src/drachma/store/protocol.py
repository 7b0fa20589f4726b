"""The contract of a store: versioned objects with compare-and-swap, consistent lists and watches.

The API server is written against ``Store``; ``memory.MemoryStore`` and ``sqlite.SqliteStore`` implement it, and one
test suite runs on both. A store belongs to one event loop and is called only from it.

Every write gets the next number of one global sequence, its revision. Reads return at once and see exactly the
committed state; a write returns once it is committed (and for SQLite, on disk). A failure raises a subclass of
``errors.StoreError`` and changes nothing.

Writes that belong together are one commit: all of them happen or none. Readers of the newest state, also after a crash,
never see a part of it. A watch gets its first event only when the last one has happened as well. The revisions in a
commit are ordinary numbers, though: a list at one of them, and a watcher that has seen events only up to it, show the
objects as if the writes had come one by one.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, Self

import msgspec

from drachma.store import record, write

FIRST_REVISION = 1
"""Revision of an empty store. It is not 0, because resourceVersion "0" has a special meaning for clients."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """History that is kept for watches and older lists; the limit that is reached first counts.

    A watcher that falls behind this history gets a ``GoneError``. Watchers share the history, so a slow one costs no
    memory of its own.
    """

    history_events: int = 10_000
    history_bytes: int = 64 * 2**20


class Page(msgspec.Struct, frozen=True):
    """A part of a consistent list, in key order.

    ``after`` is the argument for the next page (together with ``revision``), or None on the last one. ``remaining``
    counts the objects on later pages. With a filter the number is not known, and it is None unless there is no later
    page.
    """

    records: Sequence[record.Record]
    revision: int
    after: record.Key | None
    remaining: int | None


class Watch(Protocol):
    """A subscription to the events of one resource, in revision order, without gaps or repeats.

    Iterate over it, or call ``batch`` or ``ready`` to handle many events at once. It ends when it or the store is
    closed. Its owner closes it, preferably by ``with``. One task at a time may wait on it; cancelling that task loses
    no event.
    """

    @property
    def revision(self) -> int:
        """Revision up to which all events have been returned; suitable for a bookmark, or to resume from."""

    def ready(self) -> Sequence[record.Event]:
        """Return the next events that are available.

        If there are none, wait for a batch, which raises if there is a reason.
        """

    async def batch(self) -> Sequence[record.Event]:
        """Return the next events, at least one; empty once closed.

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
        """Revision of the newest committed write."""

    @property
    def compacted(self) -> int:
        """Oldest revision that can still be listed, or watched from."""

    @property
    def fault(self) -> str:
        """Reason why writes fail, such as "disk full"; empty while they succeed.

        While the disk is full, deletes succeed, and so do updates that make no object larger.
        """

    def get(self, key: record.Key) -> record.Record | None:
        """Return the committed object under ``key``."""

    def changed(self, resource: str) -> int:
        """Return the revision of the newest known write of a resource, 0 for none.

        A list at this revision or a later one is still current.
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
        """Return objects of a resource in key order, as they were at one revision (by default the newest).

        The order is that of ``namespace/name`` as text. With a limit and without ``where``, the cost is linear in the
        page and in the number of the resource's events since ``revision``, not in the size of the collection.

        Raises:
            errors.GoneError: ``revision`` is compacted.
            errors.FutureRevisionError: ``revision`` has not been reached.
        """

    async def commit(self, writes: Sequence[write.Write]) -> Sequence[record.Record]:
        """Commit several writes of different objects, all or none; return their records in the order of ``writes``.

        In that order they get consecutive revisions. If a write does not hold, nothing is written and no revision is
        used; the error is that of the first such write and carries its key. ``create``, ``update`` and ``delete`` are
        commits of a single write.

        A key may come only once: a second write of it would depend on a revision that does not exist yet.

        Raises:
            errors.PreconditionError: the subclass that the write alone would raise.
            errors.WriteFailedError, errors.StoreClosedError,
            errors.InvalidValueError: a key or body that cannot be stored, a key that comes twice, no write at all,
                or more of them than one batch takes.
        """

    async def create(self, key: record.Key, draft: record.Draft, *, uid: str = "") -> record.Record:
        """Add an object; its uid stays with it until it is deleted.

        Raises:
            errors.AlreadyExistsError, errors.WriteFailedError, errors.StoreClosedError,
            errors.InvalidValueError: a key or body that cannot be stored.
        """

    async def update(self, key: record.Key, draft: record.Draft, *, revision: int) -> record.Record:
        """Replace an object whose newest revision is ``revision``.

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
        """Remove an object if it still has this revision and uid, as far as given.

        Return the last content at the revision of the deletion. ``draft`` makes it from the removed object and that
        revision; without ``draft`` the content stays as it was.

        Raises:
            errors.NotFoundError, errors.ConflictError, errors.WriteFailedError, errors.StoreClosedError.
        """

    def watch(self, resource: str, namespace: str | None = None, *, after: int) -> Watch:
        """Watch events with a revision above ``after``. A revision not reached yet skips the events up to it.

        Raises:
            errors.GoneError: ``after`` is compacted.
            errors.StoreClosedError: the store is closed.
        """

    async def compact(self, revision: int) -> None:
        """Drop history before ``revision``; objects stay. A revision that is compacted already is accepted.

        Raises:
            errors.FutureRevisionError, errors.WriteFailedError, errors.StoreClosedError.
        """

    async def close(self) -> None:
        """Finish accepted writes, end watches and close files. Reads still work; writes do not."""
