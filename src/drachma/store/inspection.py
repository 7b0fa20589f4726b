"""Inspection of a data directory: everything is read and judged before anything may be written.

The journal inspects a directory before SQLite opens it for writing, because opening alone merges the write-ahead log
into the database. Repair and check use the same findings. SQLite reads through links to the files, in a folder of
their own and with a connection that cannot write, so it finds the write-ahead log and changes neither file.
"""

import contextlib
import os
import pathlib
import shutil
import sqlite3
from collections.abc import Iterator, Sequence

import msgspec

from drachma import errors
from drachma.store import cipher, directory, redo, row, schema, state


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """State of the database, and the batches that only the redo log has.

    ``lineage`` is empty for a database that has no redo log yet. ``header`` is the header of the redo log.
    """

    loader: row.Loader
    lineage: str
    header: redo.Header | None
    missing: Sequence[redo.Entry]
    warnings: Sequence[str] = ()
    has_damaged_log: bool = False
    """The write-ahead log must be moved away before the database is opened."""

    @property
    def state(self) -> state.State:
        return self.loader.state


def inspect(home: directory.Directory, seal: cipher.Cipher) -> Findings:
    """Check the files of a directory whose database exists, and leave them as they are.

    After a checkpoint, a damaged write-ahead log may cover newer pages of the database with older ones. So if the files
    are not complete together, the database is checked without its log.

    Raises:
        errors.RefusedFileError: acknowledged writes are missing, or a file is damaged.
        sqlite3.Error, UnicodeError: SQLite cannot read the database.
        errors.CipherError: an object cannot be decrypted.
        OSError: a file cannot be read.
    """
    if not home.write_ahead_log.exists():
        return _inspect(home, seal, has_log=False)
    try:
        return _inspect(home, seal, has_log=True)
    except (errors.DamagedFileError, sqlite3.DatabaseError, UnicodeError):
        try:
            findings = _inspect(home, seal, has_log=False)
        except (errors.DamagedFileError, sqlite3.Error, UnicodeError):
            findings = None
        if findings is None or findings.header is None:
            raise
    warning = f"write-ahead log {home.write_ahead_log}: damaged; {home.file.name} and {home.redo.name} have every write"
    return msgspec.structs.replace(findings, has_damaged_log=True, warnings=[warning, *findings.warnings])


def _inspect(home: directory.Directory, seal: cipher.Cipher, *, has_log: bool) -> Findings:
    with open_read_only(home, has_log=has_log) as connection:
        try:
            _check_structure(connection, home)
            loader = row.load(connection, seal)
        except row.DamagedRowsError as damage:
            raise schema.refusal(home.file, f"damaged: {damage}{_describe_end(home)}") from damage
        lineage = read_lineage(connection)
    if not lineage and not home.redo.exists():
        return Findings(loader=loader, lineage="", header=None, missing=())
    return _compare(home, loader, lineage, read_redo(home))


def read_lineage(connection: sqlite3.Connection) -> str:
    """Return the name of the store, which its redo log has too; empty before it has one."""
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(progress)")]
    if "lineage" not in columns:
        return ""
    (lineage,) = connection.execute("SELECT lineage FROM progress").fetchone()
    return str(lineage)


def read_redo(home: directory.Directory) -> redo.Contents:
    """Read the redo log of a database that has one. Raises errors.RefusedFileError."""
    try:
        return redo.read(home.redo)
    except FileNotFoundError as error:
        raise schema.refusal(home.redo, "missing, so acknowledged writes may be missing as well") from error
    except redo.InvalidLogError as error:
        raise schema.refusal(home.redo, f"{error}, so acknowledged writes may be missing") from error


@contextlib.contextmanager
def open_read_only(home: directory.Directory, *, has_log: bool = True) -> Iterator[sqlite3.Connection]:
    """Open the database for reading, with its write-ahead log or without it, and without changing either."""
    shutil.rmtree(home.inspection, ignore_errors=True)
    home.inspection.mkdir(mode=0o700)
    try:
        link = home.inspection / home.file.name
        _link(home.file, link)
        if has_log and home.write_ahead_log.exists():
            _link(home.write_ahead_log, home.inspection / home.write_ahead_log.name)
        connection = sqlite3.connect(f"{link.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=0)
        try:
            yield connection
        finally:
            connection.close()
    finally:
        shutil.rmtree(home.inspection, ignore_errors=True)


def _link(source: pathlib.Path, target: pathlib.Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        # The file system has no hard links; a symbolic link would lead SQLite back to the files.
        shutil.copyfile(source, target)


def _check_structure(connection: sqlite3.Connection, home: directory.Directory) -> None:
    """Have SQLite check its pages after an unclean end; a clean one leaves no write-ahead log.

    A checkpoint that was interrupted leaves pages of two ages in the database, which only the log makes whole.
    """
    if not home.write_ahead_log.exists():
        return
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise row.DamagedRowsError(first_fault(verdict))


def first_fault(verdict: str) -> str:
    """Return the fault in SQLite's verdict on a database, which may begin with a line about which database it is."""
    return verdict.splitlines()[-1]


def _describe_end(home: directory.Directory) -> str:
    """Return the last acknowledged write according to the redo log, for a message about a damaged database."""
    with contextlib.suppress(redo.InvalidLogError, OSError):
        return f"; the last acknowledged revision is {redo.read(home.redo).acknowledged}"
    return ""


def _compare(home: directory.Directory, loader: row.Loader, lineage: str, contents: redo.Contents) -> Findings:
    """Add the batches that the database lacks to its state, and refuse if the result is not complete."""
    committed, header = loader.state, contents.header
    if lineage and lineage != header.lineage:
        raise schema.refusal(home.redo, f"belongs to another {home.file.name}")
    if contents.is_cut_off:
        raise schema.refusal(
            home.redo,
            f"damaged at its start; acknowledged writes go up to revision {contents.acknowledged} at least, "
            f"the database has revision {committed.revision}",
        )
    if committed.revision < header.revision or committed.compacted < header.compacted:
        raise _lost_error(home, committed, contents)
    missing_entries = [entry for entry in (*contents.entries, *contents.strays) if not _is_stored(entry, committed)]
    if any(entry.compaction is not None and entry in missing_entries for entry in contents.strays):
        # It may depend on an earlier compaction in the damaged part.
        raise _lost_error(home, committed, contents)
    try:
        for entry in missing_entries:
            replay(loader, entry)
    except row.DamagedRowsError as damage:
        raise _lost_error(home, committed, contents) from damage
    if not lineage and (contents.entries or header.revision != committed.revision):
        raise schema.refusal(home.redo, f"belongs to another {home.file.name}")
    warnings = []
    if contents.strays:
        warnings.append(f"redo log {home.redo}: damaged in the middle; {home.file.name} has the writes from there")
    if missing_entries:
        warnings.append(
            f"data file {home.file}: {len(missing_entries)} commits were missing and are restored from the redo log, "
            f"up to revision {committed.revision}"
        )
    return Findings(loader=loader, lineage=lineage, header=header, missing=missing_entries, warnings=warnings)


def replay(loader: row.Loader, entry: redo.Entry) -> None:
    """Apply a batch of the redo log to a state. Raises row.DamagedRowsError."""
    if entry.compaction is not None:
        # As in the engine, history is compacted first, and never beyond the writes before the batch.
        loader.compact(entry.compaction)
    for each in entry.rows:
        loader.add(each)


def _is_stored(entry: redo.Entry, committed: state.State) -> bool:
    compacted = 0 if entry.compaction is None else entry.compaction.revision
    return entry.revision <= committed.revision and compacted <= committed.compacted


def _lost_error(home: directory.Directory, committed: state.State, contents: redo.Contents) -> errors.RefusedFileError:
    acknowledged = contents.acknowledged
    entries = (*contents.entries, *contents.strays)
    present = {number for entry in entries for number, *_ in entry.rows if number > committed.revision}
    lost = acknowledged - committed.revision - len(present)
    return schema.refusal(
        home.file,
        f"older than the writes that were acknowledged: it has revision {committed.revision}, the last acknowledged "
        f"is {acknowledged}, and {lost} of the writes in between are lost",
    )
