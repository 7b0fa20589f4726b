"""The journal on disk: one thread, one connection, one transaction with one fsync per batch.

``SqliteStore`` opens it; the engine hands it batches. The connection lives in the thread and is the only one
that ever writes (SQLite before 3.51.3 may damage a write-ahead log that has two writers), and the same thread
moves the log into the file, after it has answered. Nobody waits for the disk but those who asked for a write.
"""

import asyncio
import concurrent.futures
import contextlib
import functools
import itertools
import json
import logging
import pathlib
import sqlite3
from collections.abc import Sequence
from typing import Final

from drachma import errors
from drachma.store import directory, journal, row, schema, state

_CHECKPOINT = 8 * 2**20
"""Bytes of the write-ahead log before it is moved into the file: a pause of some milliseconds.

Afterwards the log begins anew in the room it has, and a commit takes half as long as one that makes it grow.
"""

_COMMIT = 2 * schema.PAGE
"""What a commit writes to the log beside its rows: whole pages, the last of which the next commit writes again."""

_ROWS = 64
"""Rows written by one statement. SQLite lets go of the interpreter in each, and getting it back may take milliseconds,
so a usual batch is a single statement: without a transaction around it, it is one."""

_logger = logging.getLogger(__name__)


class SqliteJournal:
    patience: Final = 0.005
    """About what a commit takes where others want the processor as well."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="drachma-store")
        self._file = path
        self._connection: sqlite3.Connection
        self._held = contextlib.ExitStack()
        self._unmoved = 0

    async def open(self) -> state.State:
        """Takes the directory, makes or checks the file, and reads it.

        Raises:
            errors.DirectoryInUseError, errors.RefusedFileError, errors.WriteFailedError
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._open)
        except BaseException:
            # A caller who gives up must not leave the directory taken by a thread that goes on opening it.
            self._thread.submit(self._close)
            self._thread.shutdown(wait=False)
            raise

    def commit(self, batch: journal.Batch, done: journal.Done) -> None:
        self._thread.submit(self._commit, batch, loop=asyncio.get_running_loop(), done=done)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    def _open(self) -> state.State:
        with self._held as held:
            home = directory.acquire(self._path)
            held.callback(home.release)
            try:
                schema.prepare(home)
                connection = sqlite3.connect(home.file, isolation_level=None, timeout=0)
                held.callback(connection.close)
                _configure(connection)
                schema.migrate(connection, home)
                committed = row.load(connection, home.file)
            except (sqlite3.Error, UnicodeError) as error:
                # A damaged layout makes SQLite quote bytes in its message that are not even text.
                raise _open_error(error, home) from error
            except OSError as error:
                raise errors.RefusedFileError(
                    f"data directory {home.path}: cannot be used: {error.strerror} ({error.filename})"
                ) from error
            self._held = held.pop_all()
        self._file = home.file
        self._connection = connection
        return committed

    def _commit(self, batch: journal.Batch, *, loop: asyncio.AbstractEventLoop, done: journal.Done) -> None:
        failure = self._write(batch)
        # A loop that is gone has nobody left to answer to.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(done, failure)
        self._checkpoint_when_due()

    def _write(self, batch: journal.Batch) -> errors.WriteFailedError | None:
        connection = self._connection
        rows = [row.of(event) for event in batch.events]
        self._unmoved += _COMMIT + sum(len(event.record.data) for event in batch.events)
        try:
            if batch.compaction is None and len(rows) <= _ROWS:
                self._insert(rows)
                return None
            connection.execute("BEGIN IMMEDIATE")
            for first in range(0, len(rows), _ROWS):
                self._insert(rows[first : first + _ROWS])
            if batch.compaction is not None:
                self._compact(batch.compaction)
            connection.execute("COMMIT")
        except Exception as error:
            # SQLite has rolled back already after most disk errors, and then refuses to do it again.
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            return _write_error(error, self._file)
        return None

    def _insert(self, rows: Sequence[row.Row]) -> None:
        self._connection.execute(_statement(len(rows)), list(itertools.chain.from_iterable(rows)))

    def _compact(self, compaction: state.Compaction) -> None:
        self._connection.execute(
            "DELETE FROM log WHERE revision IN (SELECT value FROM json_each(?))",
            (json.dumps(compaction.doomed),),
        )
        self._connection.execute("UPDATE progress SET compacted = ?, kept = ?", (compaction.revision, compaction.kept))
        self._unmoved += len(compaction.doomed) * schema.PAGE // 4

    def _checkpoint_when_due(self) -> None:
        if self._unmoved < _CHECKPOINT:
            return
        self._unmoved = 0
        try:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error as error:
            # Nothing is lost: what is committed stays in the write-ahead log until a later checkpoint works.
            _logger.warning("data file %s: checkpoint put off: %s", self._file, error)

    def _close(self) -> None:
        try:
            # Closing moves the log into the file; where that fails it stays beside it for the next start.
            self._held.close()
        except sqlite3.Error as error:
            _logger.warning("data file %s: closed with its write-ahead log: %s", self._file, error)


@functools.lru_cache(maxsize=_ROWS)
def _statement(count: int) -> str:
    """Writes so many rows. All of them fit in the connection's own cache of compiled statements."""
    return f"INSERT INTO log ({row.COLUMNS}) VALUES " + ", ".join([row.PLACES] * count)


def _configure(connection: sqlite3.Connection) -> None:
    # Exclusive before the first access: no other program can write as long as the store is open, and the
    # index of the write-ahead log needs no shared memory.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchone()
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise sqlite3.OperationalError(f"write-ahead log is not available, journal mode is {mode}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 0").fetchone()
    # Takes the lock, and finds out now whether the file may be written.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("ROLLBACK")


def _open_error(error: Exception, home: directory.Directory) -> errors.StoreError:
    name = _name(error)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return errors.DirectoryInUseError(
            f"data file {home.file}: locked by another program, such as a database tool; close that one first"
        )
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return _write_error(error, home.file)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        return schema.refusal(
            home.file, f"cannot be opened for writing: {error}", advice="correct owner and permissions"
        )
    return schema.refusal(home.file, f"damaged: {error}")


def _write_error(error: Exception, file: pathlib.Path) -> errors.WriteFailedError:
    name = _name(error)
    if name == "SQLITE_FULL":
        return errors.DiskFullError(f"data file {file}: no room is left on the disk; make room and try again")
    detail = f"{error} ({name})" if name else f"{type(error).__name__}: {error}"
    return errors.WriteFailedError(f"data file {file}: the write failed: {detail}")


def _name(error: Exception) -> str:
    return getattr(error, "sqlite_errorname", "")
