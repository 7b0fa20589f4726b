"""Work on the files of a store that no server has open: check, back up and restore. No key is needed for that."""

import contextlib
import datetime as dt
import itertools
import pathlib
import sqlite3
from collections.abc import Iterator

import msgspec

from drachma import errors
from drachma.store import backupfile, cipher, directory, inspection, lineage, record, row, schema


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a store whose files are in order."""

    revision: int
    compacted: int
    objects: int
    resources: int
    restored_commits: int
    """Commits that only the redo log has; the next start restores them."""
    warnings: tuple[str, ...]


def check(path: pathlib.Path) -> Facts:
    """Read all files of a store and every row in them, without changing any.

    Raises:
        errors.DirectoryInUseError: a server has it open.
        errors.RefusedFileError: it is damaged, or is no store.
    """
    with _inspect(path) as (home, findings):
        with inspection.open_read_only(home) as connection:
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise schema.refusal(home.file, f"damaged: {inspection.first_fault(verdict)}")
        records = list(_objects(findings))
        for item in records:
            if not item.data.startswith(cipher.PREFIX):
                _check_body(home, item)
        return Facts(
            revision=findings.state.revision,
            compacted=findings.state.compacted,
            objects=len(records),
            resources=len({item.key.resource for item in records}),
            restored_commits=len(findings.missing),
            warnings=tuple(findings.warnings),
        )


def back_up(path: pathlib.Path, target: pathlib.Path, *, now: dt.datetime) -> backupfile.Summary:
    """Write a backup of a store that no server has open.

    Raises:
        errors.DirectoryInUseError, errors.RefusedFileError, errors.WriteFailedError
    """
    untouched = cipher.Untouched()
    with _inspect(path) as (_, findings), backupfile.Writer(target) as writer:
        head = backupfile.Head(
            lineage=findings.lineage, revision=findings.state.revision, time=f"{now:%Y-%m-%dT%H:%M:%SZ}"
        )
        writer.begin(head)
        rows = (row.make_object_row(item, untouched) for item in _objects(findings))
        if writer.last_key is not None:
            last = writer.last_key
            rows = (each for each in rows if _order(record.Key(*each[4:7])) > _order(last))
        while chunk := list(itertools.islice(rows, backupfile.CHUNK_ROWS)):
            writer.add(backupfile.Rows(chunk))
        return writer.finish()


def restore(backup: pathlib.Path, path: pathlib.Path) -> backupfile.Summary:
    """Make a store from a backup, in a directory that has none. Revisions begin far ahead of the backup.

    Raises:
        errors.RefusedFileError: the backup is damaged, or there is a store already.
        errors.DirectoryInUseError, errors.WriteFailedError
    """
    summary = backupfile.verify(backup)
    home = directory.acquire(path)
    try:
        for file in (home.file, home.write_ahead_log, home.redo):
            if file.exists():
                raise errors.RefusedFileError(
                    f"data directory {path}: there is a store in it ({file.name}); choose another directory, or move "
                    f"{home.file.name}*, {home.redo.name} away first"
                )
        chunks = backupfile.read(backup)
        rows = [each for chunk in chunks if isinstance(chunk, backupfile.Rows) for each in chunk.rows]
        try:
            schema.build(home, sorted(rows), compacted=lineage.first_revision(summary.revision))
            schema.install(home)
        except (OSError, sqlite3.Error) as error:
            raise errors.WriteFailedError(f"data directory {path}: cannot be restored: {error}") from error
    finally:
        home.release()
    return summary


@contextlib.contextmanager
def _inspect(path: pathlib.Path) -> Iterator[tuple[directory.Directory, inspection.Findings]]:
    if not path.is_dir():
        raise errors.RefusedFileError(f"data directory {path}: does not exist")
    home = directory.acquire(path)
    try:
        if not home.file.exists():
            raise errors.RefusedFileError(f"data directory {path}: there is no store in it")
        try:
            schema.check_header(home)
            yield home, inspection.inspect(home, cipher.Untouched())
        except (sqlite3.Error, UnicodeError) as error:
            raise schema.refusal(home.file, f"damaged: {error}") from error
        except OSError as error:
            raise errors.RefusedFileError(f"data directory {path}: cannot be read: {error.strerror}") from error
    finally:
        home.release()


def _check_body(home: directory.Directory, item: record.Record) -> None:
    try:
        msgspec.json.decode(item.data)
    except msgspec.DecodeError as error:
        raise schema.refusal(
            home.file, f"damaged: {item.key} at revision {item.revision} is not JSON: {error}"
        ) from error


def _objects(findings: inspection.Findings) -> Iterator[record.Record]:
    """Return all objects in key order."""
    committed = findings.state
    for resource in committed.resources:
        page = committed.page(resource, None, revision=None, limit=None, after=None, where=None)
        yield from page.records


def _order(key: record.Key) -> tuple[str, str, str]:
    """Return the order of lists, which compares namespaces with the slash that follows them."""
    return (key.resource, f"{key.namespace}/", key.name)
