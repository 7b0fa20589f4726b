"""Identity and layout of a data file: recognition before SQLite opens it, creation, and migration.

The journal calls ``prepare`` while it holds the directory. A file of another program or of a newer version is refused
and left as it was found.

One table is the whole store: a row per write, in revision order, never changed. The newest row of a key is the object;
compaction removes rows that no list or watch can reach any more. So a commit only appends, and reading the table in
order rebuilds both objects and history.
"""

import contextlib
import pathlib
import sqlite3
from collections.abc import Mapping, Sequence

from drachma import errors
from drachma.store import directory, protocol, row

APPLICATION = int.from_bytes(b"drac")
"""Application id in the header of every data file, which ``file`` shows as well."""

VERSION = 2
"""Layout that this version writes, in the header's user version."""

PAGE = 16384
"""Page size. Objects have a few kilobytes; pages of this size hold several, where the default of 4096 wastes half."""

_LAYOUT = (
    """
    CREATE TABLE log (
        revision INTEGER PRIMARY KEY,
        previous INTEGER NOT NULL,
        created INTEGER NOT NULL,
        deleted INTEGER NOT NULL,
        resource TEXT NOT NULL,
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        uid TEXT NOT NULL,
        data BLOB NOT NULL,
        checksum INTEGER NOT NULL
    )
    """,
    "CREATE TABLE progress (compacted INTEGER NOT NULL, kept INTEGER NOT NULL, lineage TEXT NOT NULL DEFAULT '')",
)

MIGRATIONS: Mapping[int, Sequence[str]] = {1: ["ALTER TABLE progress ADD COLUMN lineage TEXT NOT NULL DEFAULT ''"]}
"""Statements that migrate each older layout to the next one."""

_MAGIC = b"SQLite format 3\0"
_USER_VERSION = slice(60, 64)
_APPLICATION_ID = slice(68, 72)
_HEADER = 100


def refusal(path: pathlib.Path, fault: str, *, advice: str = "") -> errors.DamagedFileError:
    """Return the error for a damaged file, with advice on how to go on."""
    advice = advice or (
        "restore a backup with 'drachma store restore', or keep what can be saved with "
        f"'drachma store repair --data {path.parent}'"
    )
    return errors.DamagedFileError(f"data file {path}: {fault}; it was left as it is: {advice}")


def prepare(home: directory.Directory) -> None:
    """Create the data file if there is none; refuse one of another program or version.

    Raises:
        errors.RefusedFileError, OSError, sqlite3.Error
    """
    if not home.file.exists():
        for leftover in (home.write_ahead_log, home.redo):
            if leftover.exists():
                raise refusal(
                    leftover,
                    f"belongs to a missing {home.file.name}",
                    advice="bring that file back, or move this one away as well to start with an empty store",
                )
        make(home)
    check_header(home)


def check_header(home: directory.Directory) -> None:
    """Refuse a file that no version up to this one has made, before SQLite opens it.

    Raises:
        errors.DamagedFileError: it is no SQLite database.
        errors.RefusedFileError: it belongs to another program or to a newer version.
        OSError
    """
    with home.file.open("rb") as file:
        header = file.read(_HEADER)
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        raise refusal(home.file, "not a SQLite database, or damaged at its start")
    if int.from_bytes(header[_APPLICATION_ID]) != APPLICATION:
        if home.redo.exists():
            raise refusal(home.file, "damaged at its start")
        raise errors.RefusedFileError(
            f"data file {home.file}: a SQLite database of another program; it was left as it is: "
            "use another data directory, or move it away to start with an empty store"
        )
    _check_version(home.file, int.from_bytes(header[_USER_VERSION]))


def migrate(connection: sqlite3.Connection, home: directory.Directory) -> None:
    """Migrate an open file to this version's layout, in one transaction, after keeping a copy.

    Raises:
        errors.RefusedFileError, OSError, sqlite3.Error
    """
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    _check_version(home.file, layout)
    if layout == VERSION:
        return
    steps = range(layout, VERSION)
    if any(step not in MIGRATIONS for step in steps):
        raise errors.RefusedFileError(
            f"data file {home.file}: layout {layout}, which this version cannot bring up to its own, {VERSION}; "
            "it was left as it is: open it once with a version in between"
        )
    copy = home.path / f"{home.file.name}.layout-{layout}"
    copy.unlink(missing_ok=True)
    connection.execute("VACUUM INTO ?", (str(copy),))
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps:
            for statement in MIGRATIONS[step]:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION:d}")
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    # Into the file itself, so that an older version can tell from the header that it is too old.
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _check_version(path: pathlib.Path, layout: int) -> None:
    if layout > VERSION:
        raise errors.RefusedFileError(
            f"data file {path}: layout {layout} of a newer drachma, this version knows layouts up to {VERSION}; "
            "it was left as it is: use that newer version, or another data directory"
        )


def make(home: directory.Directory) -> None:
    """Make the data file of an empty store."""
    build(home, (), compacted=protocol.FIRST_REVISION)
    install(home)


def build(home: directory.Directory, rows: Sequence[row.Row], *, compacted: int) -> None:
    """Make a data file under a temporary name, with objects that were written up to the compacted revision.

    Raises:
        OSError, sqlite3.Error
    """
    home.unfinished.unlink(missing_ok=True)
    connection = sqlite3.connect(home.unfinished, isolation_level=None)
    try:
        connection.execute(f"PRAGMA page_size = {PAGE:d}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN")
        for statement in _LAYOUT:
            connection.execute(statement)
        connection.executemany(f"INSERT INTO log ({row.COLUMNS}) VALUES {row.PLACES}", rows)
        connection.execute("INSERT INTO progress (compacted, kept) VALUES (?, ?)", (compacted, len(rows)))
        connection.execute(f"PRAGMA application_id = {APPLICATION:d}")
        connection.execute(f"PRAGMA user_version = {VERSION:d}")
        connection.execute("COMMIT")
    finally:
        connection.close()
    home.unfinished.chmod(0o600)


def install(home: directory.Directory) -> None:
    """Give a data file its final name: a file of that name is always complete. Raises OSError."""
    home.unfinished.replace(home.file)
    home.sync()
