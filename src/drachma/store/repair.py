"""Repair of a damaged store: save every row that is intact, keep the damaged files, and begin a new lineage.

``drachma store repair`` runs it while no server does. Rows come from the database, as far as SQLite can read it, and
from the redo log, records after damaged ones included. Nothing is removed before its copy is in the folder of damaged
files, and a repair that is interrupted can be run again.
"""

import contextlib
import datetime as dt
import itertools
import os
import pathlib
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from drachma import errors
from drachma.store import cipher, directory, inspection, lineage, protocol, redo, row, schema

_MOST_QUERIES: Final = 100_000
"""Queries to find intact rows between damaged ones; a file that needs more is not searched further."""

_LAST: Final = 2**63 - 1


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Result of a repair."""

    fault: str
    """Reason why the store could not be opened."""
    last_acknowledged_revision: int | None
    """Newest revision that the redo log names; None if the redo log is lost."""
    last_database_revision: int
    """Newest revision that could be read from the database."""
    rows_from_database: int
    rows_from_redo_log: int
    damaged_rows: int
    lost_revisions: Sequence[tuple[int, int]]
    """First and last revision of each range of acknowledged writes that are lost."""
    lost_objects: int
    """Objects from before the kept history that are lost."""
    objects: int
    first_revision: int
    """Revision at which the repaired store begins."""
    damaged_files: str

    @property
    def lost_writes(self) -> int:
        return sum(last - first + 1 for first, last in self.lost_revisions)


class _Salvage(msgspec.Struct):
    """Saved rows by revision, and the known facts about the rows that should exist."""

    rows: dict[int, row.Row] = {}
    damaged: int = 0
    compacted: int = protocol.FIRST_REVISION
    kept: int | None = None
    newest: int = 0


def repair(path: pathlib.Path, *, now: dt.datetime) -> Report | None:
    """Repair a data directory, or return None if nothing is wrong with it.

    Raises:
        errors.DirectoryInUseError: a server has it open.
        errors.RefusedFileError: there is no store in it, or one of another program or of a newer version.
        errors.WriteFailedError: the disk failed, or has no room for the repaired file.
    """
    home = directory.acquire(path)
    try:
        try:
            fault = find_fault(home)
            return None if fault is None else _repair(home, fault, aside=path / f"damaged-{now:%Y%m%dT%H%M%SZ}")
        except (OSError, sqlite3.Error) as error:
            raise errors.WriteFailedError(f"data directory {path}: cannot be repaired: {error}") from error
    finally:
        home.release()


def find_fault(home: directory.Directory) -> str | None:
    """Return why a store cannot be opened, or None if it can. Raises errors.RefusedFileError, OSError."""
    if not home.file.exists():
        if not home.redo.exists():
            raise errors.RefusedFileError(f"data directory {home.path}: there is no store in it")
        return f"data file {home.file}: missing"
    try:
        schema.check_header(home)
        inspection.inspect(home, cipher.Untouched())
    except errors.DamagedFileError as error:
        return str(error).partition("; it was left as it is")[0]
    except (sqlite3.Error, UnicodeError) as error:
        return f"data file {home.file}: damaged: {error}"
    return None


def _repair(home: directory.Directory, fault: str, *, aside: pathlib.Path) -> Report:
    saved = _Salvage()
    _save_from_database(home, saved, has_log=True)
    if saved.newest < _read_stored_revision(home):
        # A damaged write-ahead log covers newer pages of the database.
        _save_from_database(home, saved, has_log=False)
    from_database, newest_in_database = len(saved.rows), saved.newest
    acknowledged = _save_from_redo(home, saved)
    newest = max(saved.newest, acknowledged or 0)
    rows = lineage.newest_rows(each for _, each in sorted(saved.rows.items()))
    revisions = range(saved.compacted + 1, newest + 1)
    before = sum(1 for revision in saved.rows if revision <= saved.compacted)
    report = Report(
        fault=fault,
        last_acknowledged_revision=acknowledged,
        last_database_revision=newest_in_database,
        rows_from_database=from_database,
        rows_from_redo_log=len(saved.rows) - from_database,
        damaged_rows=saved.damaged,
        lost_revisions=_gaps(sorted(saved.rows), revisions),
        lost_objects=max(0, (saved.kept or 0) - before),
        objects=len(rows),
        first_revision=lineage.first_revision(newest),
        damaged_files=str(aside),
    )
    _keep_aside(home, aside)
    (aside / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    schema.build(home, rows, compacted=report.first_revision)
    # The write-ahead log must be gone before another database has its name; the redo log has its writes.
    for leftover in (home.write_ahead_log, home.shared_memory):
        leftover.unlink(missing_ok=True)
    home.sync()
    schema.install(home)
    home.redo.unlink(missing_ok=True)
    home.sync()
    return report


def _keep_aside(home: directory.Directory, aside: pathlib.Path) -> None:
    aside.mkdir(mode=0o700, exist_ok=True)
    for file in (home.file, home.write_ahead_log, home.redo):
        if file.exists() and not (aside / file.name).exists():
            try:
                os.link(file, aside / file.name)
            except OSError:
                shutil.copyfile(file, aside / file.name)


def _read_stored_revision(home: directory.Directory) -> int:
    """Return the revision that the database had at its last checkpoint, as the redo log knows it, or 0."""
    with contextlib.suppress(redo.InvalidLogError, OSError):
        return redo.read(home.redo).header.revision
    return 0


def _save_from_database(home: directory.Directory, saved: _Salvage, *, has_log: bool) -> None:
    if not home.file.exists():
        return
    with (
        contextlib.suppress(sqlite3.Error, UnicodeError),
        inspection.open_read_only(home, has_log=has_log) as connection,
    ):
        with contextlib.suppress(sqlite3.Error, UnicodeError):
            progress = connection.execute("SELECT compacted, kept FROM progress").fetchall()
            if len(progress) == 1 and all(isinstance(value, int) for value in progress[0]):
                saved.compacted, saved.kept = progress[0]
        saved.newest = max(saved.newest, saved.compacted)
        for each in _read_rows(connection):
            if _is_row(each):
                saved.rows[each[0]] = each
                saved.newest = max(saved.newest, each[0])
            else:
                saved.damaged += 1


def _is_row(each: row.Row) -> bool:
    texts: Sequence[object] = each[4:8]
    numbers: Sequence[object] = each[:4]
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(number, int) for number in numbers)
        and row.is_intact(each)
    )


def _read_rows(connection: sqlite3.Connection) -> Iterator[row.Row]:
    """Read every row that SQLite can reach; a range that fails is read in halves."""
    query = f"SELECT {row.COLUMNS} FROM log WHERE revision BETWEEN ? AND ? ORDER BY revision"
    ranges = [(0, _LAST)]
    for _ in range(_MOST_QUERIES):
        if not ranges:
            return
        first, last = ranges.pop()
        reached = first
        try:
            for each in connection.execute(query, (first, last)):
                yield each
                reached = each[0] + 1
        except (sqlite3.Error, UnicodeError):
            if reached < last:
                middle = (reached + last) // 2
                ranges += [(middle + 1, last), (reached, middle)]


def _save_from_redo(home: directory.Directory, saved: _Salvage) -> int | None:
    """Add the rows of the redo log, and return the last acknowledged revision if the log knows it."""
    try:
        contents = redo.read(home.redo)
    except (redo.InvalidLogError, OSError):
        return None
    for entry in (*contents.entries, *contents.strays):
        for each in entry.rows:
            if _is_row(each):
                saved.rows.setdefault(each[0], each)
        if entry.compaction is not None and entry.compaction.revision > saved.compacted:
            saved.compacted, saved.kept = entry.compaction.revision, entry.compaction.kept
    # Rows that a compaction removed stay removed; an older database may still have them.
    for entry in (*contents.entries, *contents.strays):
        for revision in () if entry.compaction is None else entry.compaction.doomed:
            saved.rows.pop(revision, None)
    saved.compacted = max(saved.compacted, contents.header.compacted)
    return contents.acknowledged


def _gaps(revisions: Iterable[int], span: range) -> list[tuple[int, int]]:
    """Return the ranges of revisions in ``span`` that are missing."""
    inside = [each for each in revisions if each in span]
    edges = [span.start - 1, *inside, span.stop]
    return [(first + 1, second - 1) for first, second in itertools.pairwise(edges) if second - first > 1]
