"""The journal on disk: one thread, one connection, and for each batch one redo log record and one transaction.

``SqliteStore`` opens it; the engine passes it batches. The redo log is synced, and makes a batch durable. SQLite's own
write-ahead log is synced only when a checkpoint moves it into the database, after which the redo log starts again. The
connection lives in the thread and is the only one that ever writes (SQLite before 3.51.3 may damage a write-ahead log
that has two writers). The same thread makes checkpoints, after it has answered.
"""

import asyncio
import concurrent.futures
import contextlib
import errno
import functools
import itertools
import json
import logging
import pathlib
import secrets
import sqlite3
from collections.abc import Sequence
from typing import Final

from drachma import errors
from drachma.store import cipher, directory, inspection, journal, redo, reserve, row, schema, state

_CHECKPOINT = 8 * 2**20
"""Bytes of the write-ahead log before it is moved into the file: a pause of some milliseconds.

Afterwards the log starts again in its allocated space, and a commit takes half as long as one that makes it grow.
"""

_COMMIT = 2 * schema.PAGE
"""Bytes that a commit writes to the log in addition to its rows.

They are whole pages, the last of which the next commit rewrites.
"""

_ROWS = 64
"""Rows written by one statement. SQLite lets go of the interpreter in each, and getting it back may take milliseconds,
so a usual batch is a single statement: without a transaction around it, it is one."""

_FULL: Final = frozenset({"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"})
"""Errors of SQLite that a full disk causes; the second one when its index of the write-ahead log finds no room."""

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

_logger = logging.getLogger(__name__)


class SqliteJournal:
    patience: Final = 0.005
    """About the duration of a commit on a busy processor."""

    def __init__(self, path: pathlib.Path, *, seal: cipher.Cipher, reserve_bytes: int) -> None:
        self._path = path
        self._cipher = seal
        self._reserve = reserve.Reserve(directory.reserve_file(path), size=reserve_bytes)
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="drachma-store")
        self._file = path
        self._connection: sqlite3.Connection
        self._redo: redo.RedoLog
        # State of the database, which a checkpoint records in the redo log.
        self._revision = 0
        self._compacted = 0
        self._failure: errors.WriteFailedError | None = None
        self._is_full = False
        self._resources = contextlib.ExitStack()
        self._unmoved = 0

    @property
    def lineage(self) -> str:
        """Name of the store, which changes when it is repaired or restored."""
        return self._redo.header.lineage

    async def open(self) -> state.State:
        """Lock the directory, create or check the file, and read it.

        Raises:
            errors.DirectoryInUseError, errors.RefusedFileError, errors.WriteFailedError
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._open)
        except BaseException:
            # A cancelled caller must not leave the directory locked by a thread that still opens it.
            self._thread.submit(self._close)
            self._thread.shutdown(wait=False)
            raise

    def commit(self, batch: journal.Batch, done: journal.Done) -> None:
        self._thread.submit(self._commit, batch, loop=asyncio.get_running_loop(), done=done)

    def regain_room(self, done: journal.TellRoom) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._thread.submit(self._regain_room, loop=loop, done=done)
        except RuntimeError:
            # The journal is closed.
            loop.call_soon(functools.partial(done, has_room=False))

    async def vacuum(self) -> None:
        """Give unused room of the database back to the disk; writes wait for as long as that takes.

        Raises:
            errors.WriteFailedError: the disk failed, or has no room for a second copy of the database.
        """
        await asyncio.get_running_loop().run_in_executor(self._thread, self._vacuum)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    def _open(self) -> state.State:
        with self._resources as resources:
            home = directory.acquire(self._path)
            resources.callback(home.release)
            try:
                findings = self._inspect(home)
                for warning in findings.warnings:
                    _logger.warning("%s", warning)
                if findings.has_damaged_log:
                    home.write_ahead_log.replace(home.damaged_log)
                    home.sync()
                connection = sqlite3.connect(home.file, isolation_level=None, timeout=0)
                resources.callback(connection.close)
                _configure(connection)
                schema.migrate(connection, home)
                self._connection, self._file = connection, home.file
                for entry in findings.missing:
                    self._apply(entry)
                self._revision, self._compacted = findings.state.revision, findings.state.compacted
                self._redo = _open_redo(connection, home, findings)
                resources.callback(self._redo.close)
            except (sqlite3.Error, UnicodeError) as error:
                # For a damaged layout SQLite's message may quote bytes that are not text.
                raise _open_error(error, home) from error
            except OSError as error:
                raise _directory_error(error, home) from error
            if not self._reserve.hold():
                _logger.warning("data directory %s: the disk has no room for a reserve", home.path)
            # From here on the redo log makes writes durable. SQLite syncs its own log before each checkpoint.
            connection.execute("PRAGMA synchronous = NORMAL")
            self._resources = resources.pop_all()
        return findings.state

    def _inspect(self, home: directory.Directory) -> inspection.Findings:
        """Create or check the files; a full disk gets its reserve back for that."""
        try:
            schema.prepare(home)
            return inspection.inspect(home, self._cipher)
        except (OSError, sqlite3.Error) as error:
            if not home.file.exists() or not isinstance(_write_error(error, home.file), errors.DiskFullError):
                raise
            self._release_reserve()
            return inspection.inspect(home, self._cipher)

    def _commit(self, batch: journal.Batch, *, loop: asyncio.AbstractEventLoop, done: journal.Done) -> None:
        failure = self._write(batch)
        # A closed loop has no caller to answer.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(done, failure)
        self._checkpoint_when_due()

    def _regain_room(self, *, loop: asyncio.AbstractEventLoop, done: journal.TellRoom) -> None:
        has_room = self._reserve.hold() or self._free_bytes() >= 2 * self._reserve.size
        self._is_full = not has_room
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(functools.partial(done, has_room=has_room))

    def _free_bytes(self) -> int:
        """Return the room inside the database that deletes have left; SQLite uses it for later writes."""
        try:
            (pages,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        except sqlite3.Error:
            return 0
        return int(pages) * schema.PAGE

    def _write(self, batch: journal.Batch) -> errors.WriteFailedError | None:
        if self._failure is not None:
            return self._failure
        try:
            entry = redo.Entry([row.make_row(event, self._cipher) for event in batch.events], batch.compaction)
        except errors.CipherError as error:
            return errors.WriteFailedError(f"data file {self._file}: the write failed: {error}")
        self._unmoved += _COMMIT + sum(len(event.record.data) for event in batch.events)
        mark = self._redo.mark()
        try:
            self._redo.append(entry)
            self._apply(entry)
        except Exception as error:
            failure = _write_error(error, self._file)
            if isinstance(failure, errors.DiskFullError):
                # First, so that there is room to withdraw the batch.
                self._is_full = True
                self._release_reserve()
            self._withdraw(mark)
            return failure
        self._revision = max(self._revision, entry.revision)
        if entry.compaction is not None:
            self._compacted = entry.compaction.revision
        return None

    def _release_reserve(self) -> None:
        try:
            self._reserve.release()
        except OSError as error:
            _logger.warning("data file %s: the reserve cannot be given back: %s", self._file, error)

    def _withdraw(self, mark: tuple[int, int]) -> None:
        """Remove a batch that failed from the redo log, or else accept no further batch."""
        try:
            self._redo.withdraw(mark)
        except OSError as error:
            # A restart may find the batch, so no other batch may take its revisions.
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        """Refuse every later batch."""
        self._failure = errors.WriteFailedError(
            f"data file {self._file}: the redo log cannot be written: {error.strerror}; start again when it can"
        )
        _logger.error("%s", self._failure)

    def _apply(self, entry: redo.Entry) -> None:
        """Write a batch to the database, all of it or nothing. Raises sqlite3.Error."""
        rows = entry.rows
        if entry.compaction is None and len(rows) <= _ROWS:
            self._insert(rows)
            return
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            for first in range(0, len(rows), _ROWS):
                self._insert(rows[first : first + _ROWS])
            if entry.compaction is not None:
                self._compact(entry.compaction)
            connection.execute("COMMIT")
        except BaseException:
            # SQLite has rolled back already after most disk errors, and then refuses to do it again.
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

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
        # On a full disk every commit is moved at once: the write-ahead log cannot grow, only start again.
        if self._unmoved < (1 if self._is_full else _CHECKPOINT):
            return
        self._unmoved = 0
        try:
            self._checkpoint()
        except (sqlite3.Error, OSError) as error:
            # Nothing is lost: commits stay in both logs until a later checkpoint succeeds.
            _logger.warning("data file %s: checkpoint put off: %s", self._file, error)

    def _checkpoint(self) -> None:
        _move_log(self._connection)
        try:
            self._redo.begin(revision=self._revision, compacted=self._compacted)
        except OSError as error:
            # The new header may or may not be on disk, so a restart may skip records after the old one.
            self._fail(error)

    def _vacuum(self) -> None:
        try:
            self._connection.execute("VACUUM")
            self._checkpoint()
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except (sqlite3.Error, OSError) as error:
            raise _write_error(error, self._file) from error

    def _close(self) -> None:
        try:
            # Closing moves the log into the file; if that fails, the log stays next to it for the next start.
            self._resources.close()
        except sqlite3.Error as error:
            _logger.warning("data file %s: closed with its write-ahead log: %s", self._file, error)


@functools.lru_cache(maxsize=_ROWS)
def _statement(count: int) -> str:
    """Return the statement that inserts so many rows. All of them fit in the connection's statement cache."""
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
    # Take the lock, and find out now whether the file is writable.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("ROLLBACK")


def _move_log(connection: sqlite3.Connection) -> None:
    """Move the write-ahead log into the database, and sync both. Raises sqlite3.Error."""
    busy, size, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if busy or size != moved:
        raise sqlite3.OperationalError(f"checkpoint moved {moved} of {size} pages")


def _open_redo(
    connection: sqlite3.Connection, home: directory.Directory, findings: inspection.Findings
) -> redo.RedoLog:
    """Open the redo log at the state of the database, or make the first one of a database.

    The database names its store only when the redo log is on disk, so a database with a name always has one.
    """
    committed = findings.state
    # Batches that were restored must be in the database before the redo log forgets them.
    _move_log(connection)
    if findings.lineage and findings.header is not None:
        log = redo.RedoLog.open(home.redo, findings.header)
        try:
            log.begin(revision=committed.revision, compacted=committed.compacted)
        except BaseException:
            log.close()
            raise
        return log
    lineage = secrets.token_hex(16)
    header = redo.Header(generation=1, lineage=lineage, revision=committed.revision, compacted=committed.compacted)
    log = redo.RedoLog.create(home.redo, header)
    try:
        home.sync()
        connection.execute("UPDATE progress SET lineage = ?", (lineage,))
        _move_log(connection)
    except BaseException:
        log.close()
        raise
    return log


def _directory_error(error: OSError, home: directory.Directory) -> errors.StoreError:
    if error.errno in _NO_ROOM:
        return errors.DiskFullError(f"data directory {home.path}: no room is left on the disk; make room and try again")
    return errors.RefusedFileError(
        f"data directory {home.path}: cannot be used: {error.strerror} ({error.filename or home.redo})"
    )


def _open_error(error: Exception, home: directory.Directory) -> errors.StoreError:
    name = _name(error)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return errors.DirectoryInUseError(
            f"data file {home.file}: locked by another program, such as a database tool; close that one first"
        )
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return _write_error(error, home.file)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        return errors.RefusedFileError(
            f"data file {home.file}: cannot be opened for writing: {error}; correct owner and permissions"
        )
    return schema.refusal(home.file, f"damaged: {error}")


def _write_error(error: Exception, file: pathlib.Path) -> errors.WriteFailedError:
    name = _name(error)
    if name in _FULL or (isinstance(error, OSError) and error.errno in _NO_ROOM):
        return errors.DiskFullError(f"data file {file}: no room is left on the disk; make room and try again")
    if isinstance(error, OSError) and error.strerror:
        return errors.WriteFailedError(f"data file {file}: the write failed: {error.strerror}")
    detail = f"{error} ({name})" if name else f"{type(error).__name__}: {error}"
    return errors.WriteFailedError(f"data file {file}: the write failed: {detail}")


def _name(error: Exception) -> str:
    return getattr(error, "sqlite_errorname", "")
