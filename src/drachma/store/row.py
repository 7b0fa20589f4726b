"""Rows of the data file: an event as a row, and the state that rows in revision order add up to.

The journal writes rows and reads them at the start. Reading trusts nothing: each row carries a checksum, names
the row it replaces, and no revision of the kept history may be missing.
"""

import pathlib
import sqlite3
import sys
import zlib
from typing import Final, TypeAlias

from drachma.store import record, schema, state

COLUMNS = "revision, previous, created, deleted, resource, namespace, name, uid, data, checksum"
PLACES = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

_DELETED: Final = record.Change.DELETED

Row: TypeAlias = tuple[int, int, int, int, str, str, str, str, bytes, int]


def of(event: record.Event) -> Row:
    item = event.record
    previous = 0 if event.previous is None else event.previous.revision
    deleted = 1 if event.change is _DELETED else 0
    facts = (item.revision, previous, item.create_revision, deleted, *item.key, item.uid)
    return (*facts, item.data, _checksum(facts, item.data))


def load(connection: sqlite3.Connection, file: pathlib.Path) -> state.State:
    """The state a data file holds. Linear in its size.

    Raises:
        errors.RefusedFileError: rows are damaged or missing.
        sqlite3.Error: SQLite found damage of its own.
    """
    progress = connection.execute("SELECT compacted, kept FROM progress").fetchall()
    if len(progress) != 1 or not all(isinstance(value, int) for value in progress[0]):
        raise schema.refusal(file, f"damaged: progress of compaction is {progress}, not one pair of numbers")
    compacted, kept = progress[0]
    committed = state.State(compacted=compacted, kept=kept)
    restored = 0
    for row in connection.execute(f"SELECT {COLUMNS} FROM log ORDER BY revision"):
        revision, previous, created, deleted, resource, namespace, name, uid, data, checksum = row
        if not isinstance(data, bytes) or _checksum(row[:8], data) != checksum:
            raise schema.refusal(file, f"damaged: the checksum of revision {revision} does not match")
        # A resource and a namespace are the same few texts in every row; one copy of each will do.
        key = record.Key(sys.intern(resource), sys.intern(namespace), name)
        item = record.Record(key, uid, created, revision, data)
        before = committed.get(key)
        if revision <= compacted:
            if before is not None or deleted:
                raise schema.refusal(file, f"damaged: revision {revision} of {key} should be compacted")
            committed.restore(item)
            restored += 1
            continue
        if revision != committed.revision + 1:
            raise schema.refusal(file, f"damaged: revision {committed.revision + 1} is missing")
        if previous != (0 if before is None else before.revision):
            raise schema.refusal(file, f"damaged: revision {previous} of {key} is missing")
        change = record.Change.ADDED if before is None else record.Change.MODIFIED
        committed.apply(record.Event(record.Change.DELETED if deleted else change, item, before))
    if restored != kept:
        raise schema.refusal(file, f"damaged: {restored} objects up to revision {compacted} are there, not {kept}")
    return committed


def _checksum(facts: tuple[object, ...], data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32("\0".join(map(str, facts)).encode()))
