"""Rows of the data file: an event as a row, and the state that rows in revision order add up to.

The journal writes rows and reads them at the start. Reading trusts nothing: each row carries a checksum, names
the row it replaces, and no revision of the kept history may be missing.
"""

import sqlite3
import sys
import zlib
from collections.abc import Sequence
from typing import Final, TypeAlias, cast

from drachma.store import cipher, record, state

COLUMNS = "revision, previous, created, deleted, resource, namespace, name, uid, data, checksum"
PLACES = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

_DELETED: Final = record.Change.DELETED

Row: TypeAlias = tuple[int, int, int, int, str, str, str, str, bytes, int]


def make_row(event: record.Event, seal: cipher.Cipher) -> Row:
    """Return the row of an event, with its body in sealed form. Raises errors.CipherError."""
    item = event.record
    previous = 0 if event.previous is None else event.previous.revision
    deleted = 1 if event.change is _DELETED else 0
    return _make(item, seal, previous=previous, deleted=deleted)


def make_object_row(item: record.Record, seal: cipher.Cipher) -> Row:
    """Return the row of an object without its history. Raises errors.CipherError."""
    return _make(item, seal, previous=0, deleted=0)


def _make(item: record.Record, seal: cipher.Cipher, *, previous: int, deleted: int) -> Row:
    key, uid, created, revision = item.key, item.uid, item.create_revision, item.revision
    resource, namespace, name = key
    data = seal.seal(key, item.data)
    # The text of _checksum(), formatted at once because every write needs one.
    facts = f"{revision}\0{previous}\0{created}\0{deleted}\0{resource}\0{namespace}\0{name}\0{uid}"
    checksum = zlib.crc32(data, zlib.crc32(facts.encode()))
    return (revision, previous, created, deleted, resource, namespace, name, uid, data, checksum)


def is_intact(row: Row) -> bool:
    """Return True if a row has the types and the checksum that it was written with."""
    data: object = row[8]
    return isinstance(data, bytes) and _checksum(row[:8], data) == row[9]


class DamagedRowsError(Exception):
    """Rows do not add up to a state; the message says which row, and why."""


class Loader:
    """Adds rows in revision order to a state."""

    def __init__(self, progress: Sequence[tuple[object, ...]], seal: cipher.Cipher) -> None:
        """Begin with the compaction progress that the file has stored. Raises DamagedRowsError."""
        if len(progress) != 1 or not all(isinstance(value, int) for value in progress[0][:2]):
            raise DamagedRowsError(f"progress of compaction is {progress}, not one pair of numbers")
        self._compacted, self._kept = cast("tuple[int, int]", progress[0][:2])
        self._restored = 0
        self._cipher = seal
        self.state: Final = state.State(compacted=self._compacted, object_count=self._kept)

    def add(self, row: Row) -> None:
        """Add the row of the next revision. Raises DamagedRowsError, errors.CipherError."""
        committed, compacted = self.state, self._compacted
        revision, previous, created, deleted, resource, namespace, name, uid, data, _ = row
        if not is_intact(row):
            raise DamagedRowsError(f"the checksum of revision {revision} does not match")
        # All rows have the same few resources and namespaces; one copy of each is enough.
        key = record.Key(sys.intern(resource), sys.intern(namespace), name)
        item = record.Record(key, uid, created, revision, self._cipher.open(key, data))
        before = committed.get(key)
        if revision <= compacted:
            if before is not None or deleted:
                raise DamagedRowsError(f"revision {revision} of {key} should be compacted")
            committed.restore(item)
            self._restored += 1
            return
        if revision != committed.revision + 1:
            raise DamagedRowsError(f"revision {committed.revision + 1} is missing")
        if previous != (0 if before is None else before.revision):
            raise DamagedRowsError(f"revision {previous} of {key} is missing")
        change = record.Change.ADDED if before is None else record.Change.MODIFIED
        committed.apply(record.Event(_DELETED if deleted else change, item, before))

    def compact(self, compaction: state.Compaction) -> None:
        """Compact history like a replayed batch."""
        self.state.compact(compaction)
        self._compacted = compaction.revision

    def check_count(self) -> None:
        """Check that all objects from before the compacted revision exist. Raises DamagedRowsError."""
        if self._restored != self._kept:
            raise DamagedRowsError(
                f"{self._restored} objects up to revision {self._compacted} are there, not {self._kept}"
            )


def load(connection: sqlite3.Connection, seal: cipher.Cipher) -> Loader:
    """Return the state that a data file holds, in a loader that takes later rows. Linear in the file's size.

    Raises:
        DamagedRowsError: rows are damaged or missing.
        errors.CipherError: a body cannot be opened.
        sqlite3.Error: SQLite found damage of its own.
    """
    loader = Loader(connection.execute("SELECT * FROM progress").fetchall(), seal)
    for row in connection.execute(f"SELECT {COLUMNS} FROM log ORDER BY revision"):
        loader.add(row)
    loader.check_count()
    return loader


def _checksum(facts: tuple[object, ...], data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32("\0".join(map(str, facts)).encode()))
