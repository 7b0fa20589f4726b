"""``drachma store``: back up, restore, check, compact and repair the data directory of an API server."""

from __future__ import annotations

import asyncio
import datetime as dt
import pathlib
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from drachma import errors

if TYPE_CHECKING:
    from drachma.process.storesocket import Connection
    from drachma.store.backupfile import Summary

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Back up, restore, check, compact and repair the data directory of an API server.",
)

Data: TypeAlias = Annotated[pathlib.Path, typer.Option(help="Data directory of the API server.")]


@app.command()
def backup(
    data: Data,
    to: Annotated[pathlib.Path, typer.Option(help="Backup file to write; it must not exist.")],
) -> None:
    """Write all objects of one revision to a file, with or without a running server.

    A backup that was interrupted is continued by the same command. The file is read back before it gets its name.
    Encrypted objects stay encrypted. Keys and certificates in the data directory are not part of a backup.
    """
    from drachma.process import storesocket
    from drachma.store import offline

    connection = storesocket.connect(data) if data.is_dir() else None
    summary = offline.back_up(data, to, now=_now()) if connection is None else _receive_backup(connection, to)
    _show("wrote", to, summary)


def _receive_backup(connection: Connection, to: pathlib.Path) -> Summary:
    from drachma.process import storesocket
    from drachma.store import backupfile

    try:
        with backupfile.Writer(to) as writer:
            request = storesocket.BackUp(resume=writer.head, after=writer.last_key)
            for part in connection.ask(request):
                if isinstance(part, backupfile.Head):
                    writer.begin(part)
                elif isinstance(part, backupfile.Rows):
                    writer.add(part)
            return writer.finish()
    finally:
        connection.close()


@app.command()
def restore(
    source: Annotated[pathlib.Path, typer.Option("--from", help="Backup file to read.")],
    data: Data,
) -> None:
    """Create a store from a backup, in a data directory without a store.

    Revisions begin far ahead of the backup, so clients that watch are told to list again. Copy pki/, admin.token and
    the service account keys of the old data directory as well, or clients need new credentials.
    """
    from drachma.store import offline

    summary = offline.restore(source, data)
    _show("restored", source, summary)


@app.command()
def check(
    data: Annotated[pathlib.Path | None, typer.Option(help="Data directory of a stopped API server.")] = None,
    file: Annotated[pathlib.Path | None, typer.Option("--backup", help="Backup file.")] = None,
) -> None:
    """Read a store or a backup completely, and report damage. Nothing is changed."""
    from drachma.store import backupfile, offline

    if (data is None) == (file is None):
        raise errors.InvalidValueError("drachma store check: give either --data or --backup")
    if file is not None:
        _show("in order:", file, backupfile.verify(file))
        return
    assert data is not None, "one of two is given"
    facts = offline.check(data)
    for warning in facts.warnings:
        typer.echo(f"drachma: {warning}", err=True)
    typer.echo(
        f"in order: {data}: revision {facts.revision}, compacted up to {facts.compacted}, "
        f"{facts.objects} objects of {facts.resources} resources"
    )


@app.command()
def compact(data: Data) -> None:
    """Drop history and free unused disk space, with or without a running server.

    Clients that watch from an older revision are told to list again. Writes wait while the file is written again.
    """
    _compact_store(data)
    typer.echo(f"compacted {data}: {_size(data)} bytes")


@app.command()
def rewrite(data: Data) -> None:
    """Rewrite encrypted objects on a running server, with the first provider of its configuration.

    Run it after the configuration has changed. Afterwards no object needs an older key.
    """
    from drachma.process import storesocket

    connection = storesocket.connect(data)
    if connection is None:
        raise errors.StoreError(f"data directory {data}: no server has it open; start one with its providers first")
    try:
        (result,) = connection.ask(storesocket.Rewrite())
    finally:
        connection.close()
    assert isinstance(result, storesocket.Done), "an answer without chunks"
    typer.echo(f"rewrote {result.count} objects")


@app.command()
def repair(data: Data) -> None:
    """Recover the readable objects of a damaged store, with which no server can start.

    The damaged files are kept in a folder of their own, with a report. Revisions begin far ahead, so clients that
    watch are told to list again.
    """
    from drachma.store import repair as repairing

    report = repairing.repair(data, now=_now())
    if report is None:
        typer.echo(f"{data}: nothing to repair")
        return
    acknowledged = report.last_acknowledged_revision
    typer.echo(f"fault: {report.fault}")
    typer.echo(f"last acknowledged revision: {'unknown' if acknowledged is None else acknowledged}")
    typer.echo(f"last revision in the database: {report.last_database_revision}")
    typer.echo(
        f"rows saved: {report.rows_from_database} from the database, {report.rows_from_redo_log} from the redo log"
    )
    ranges = ", ".join(f"{first}-{last}" if first != last else str(first) for first, last in report.lost_revisions)
    typer.echo(f"lost writes: {report.lost_writes}{f' (revisions {ranges})' if ranges else ''}")
    typer.echo(f"lost objects from before the history: {report.lost_objects}")
    typer.echo(f"objects: {report.objects}")
    typer.echo(f"new revisions begin after: {report.first_revision}")
    typer.echo(f"damaged files and report.json: {report.damaged_files}")


def _compact_store(data: pathlib.Path) -> None:
    from drachma.process import storesocket
    from drachma.store import offline

    connection = storesocket.connect(data) if data.is_dir() else None
    if connection is None:
        # Refuse a directory without a store: opening it would create one.
        offline.check(data)
        asyncio.run(_compact(data))
        return
    try:
        list(connection.ask(storesocket.Compact()))
    finally:
        connection.close()


async def _compact(data: pathlib.Path) -> None:
    from drachma.store import SqliteStore, cipher

    async with await SqliteStore.open(data, seal=cipher.Untouched()) as objects:
        await objects.compact(objects.revision)
        await objects.vacuum()


def _size(data: pathlib.Path) -> int:
    return (data / "drachma.db").stat().st_size


def _show(action: str, path: pathlib.Path, summary: Summary) -> None:
    typer.echo(
        f"{action} {path}: revision {summary.revision} of {summary.time}, {summary.objects} objects, "
        f"{summary.bytes} bytes, sha256 {summary.sha256}"
    )


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
