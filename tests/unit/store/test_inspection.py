"""Files that a crash or a fault leaves: everything acknowledged is there after the start, or the start is refused."""

import hashlib
import pathlib
import shutil
import sqlite3
from collections.abc import Callable

import pytest

from drachma import errors, store
from drachma.store import redo, schema
from drachma.store.sqlite_journal import SqliteJournal

CLAIMS = "resource.k8s.io/resourceclaims"
WRITES = 40


def claim(number: int) -> store.Key:
    return store.Key(CLAIMS, "default", f"c{number:04}")


def copy(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """Copy the files of an open store, as they are when its process is killed."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("drachma.lock", "drachma.reserve"))
    return target


def hashes(path: pathlib.Path) -> dict[str, str]:
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in path.iterdir()
        if file.name not in ("drachma.lock", "drachma.reserve") and file.is_file()
    }


@pytest.fixture
async def crashed(tmp_path: pathlib.Path) -> pathlib.Path:
    """Files of a store that was killed after some acknowledged writes."""
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        for number in range(WRITES):
            await objects.create(claim(number), store.fixed(b'{"fill":"%s"}' % (b"x" * 500)))
        return copy(tmp_path / "data", tmp_path / "crashed")


def flip(file: pathlib.Path, position: int) -> None:
    whole = bytearray(file.read_bytes())
    whole[position] ^= 0xFF
    file.write_bytes(bytes(whole))


def flip_middle(file: pathlib.Path) -> None:
    flip(file, file.stat().st_size // 2)


def shorten(file: pathlib.Path) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])


async def names(path: pathlib.Path) -> list[str]:
    async with await store.SqliteStore.open(path) as objects:
        assert objects.revision == WRITES + 1
        return [item.key.name for item in objects.list(CLAIMS).records]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(flip_middle, id="flipped-in-the-middle"),
        pytest.param(shorten, id="truncated"),
        pytest.param(lambda file: flip(file, 16), id="damaged-header"),
        pytest.param(pathlib.Path.unlink, id="missing"),
        pytest.param(lambda file: file.write_bytes(b""), id="empty"),
    ],
)
async def test_a_damaged_write_ahead_log_loses_nothing(
    crashed: pathlib.Path, damage: Callable[[pathlib.Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    damage(crashed / "drachma.db-wal")
    assert await names(crashed) == [claim(number).name for number in range(WRITES)]
    assert "commits were missing and are restored from the redo log" in caplog.text


async def test_files_of_a_killed_store_are_complete(crashed: pathlib.Path) -> None:
    assert len(await names(crashed)) == WRITES
    assert len(await names(crashed)) == WRITES


def damage_first_record(file: pathlib.Path) -> None:
    flip(file, 2 * 4096 + 60)


async def test_damage_to_both_logs_in_different_places_loses_nothing(crashed: pathlib.Path) -> None:
    shorten(crashed / "drachma.db-wal")
    damage_first_record(crashed / "drachma.redo")
    assert len(await names(crashed)) == WRITES


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(damage_first_record, id="first-record"),
        pytest.param(lambda file: flip(file, 2 * 4096 + 10_000), id="a-record"),
    ],
)
async def test_a_damaged_redo_log_is_no_loss_while_the_database_is_complete(
    crashed: pathlib.Path, damage: Callable[[pathlib.Path], object]
) -> None:
    damage(crashed / "drachma.redo")
    assert len(await names(crashed)) == WRITES


def damage_both_logs(path: pathlib.Path) -> None:
    (path / "drachma.db-wal").unlink()
    flip(path / "drachma.redo", 2 * 4096 + 10_000)


def remove_database(path: pathlib.Path) -> None:
    for name in ("drachma.db", "drachma.db-wal"):
        (path / name).unlink()


REFUSALS: dict[str, tuple[Callable[[pathlib.Path], object], str]] = {
    "both-logs-damaged": (
        damage_both_logs,
        rf"it has revision \d+, the last acknowledged is {WRITES + 1}, and 1 of the writes in between are lost",
    ),
    "damaged-redo-header": (lambda path: flip(path / "drachma.redo", 4096), "drachma.redo: not a redo log, or damaged"),
    "no-redo-log": (lambda path: (path / "drachma.redo").unlink(), "drachma.redo: missing"),
    "redo-log-of-another-store": (
        lambda path: other_redo(path / "drachma.redo"),
        "drachma.redo: belongs to another drachma.db",
    ),
    "redo-log-without-header": (
        lambda path: (path / "drachma.redo").write_bytes(bytes(10_000)),
        "drachma.redo: not a redo log, or damaged at its start",
    ),
    "no-database": (lambda path: (path / "drachma.db").unlink(), "drachma.db-wal: belongs to a missing drachma.db"),
    "no-database-and-no-log": (
        remove_database,
        "drachma.redo: belongs to a missing drachma.db",
    ),
}


def other_redo(path: pathlib.Path) -> None:
    header = redo.Header(generation=1, lineage="00" * 16, revision=1, compacted=1)
    redo.RedoLog.create(path, header).close()


@pytest.mark.parametrize("kind", REFUSALS)
async def test_what_cannot_be_complete_is_refused_and_left_alone(crashed: pathlib.Path, kind: str) -> None:
    damage, want = REFUSALS[kind]
    damage(crashed)
    before = hashes(crashed)
    with pytest.raises(errors.RefusedFileError, match=rf"{want}.*left as it is"):
        await store.SqliteStore.open(crashed)
    assert hashes(crashed) == before


@pytest.mark.parametrize("pages", [2, 5, 9])
async def test_a_truncated_database_keeps_its_intact_log(tmp_path: pathlib.Path, pages: int) -> None:
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        await objects.commit([store.Create(claim(number), store.fixed(bytes(1000))) for number in range(100)])
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        for number in range(100, 110):
            await objects.create(claim(number), store.fixed(bytes(1000)))
        crashed = copy(tmp_path / "data", tmp_path / "crashed")
    file = crashed / "drachma.db"
    file.write_bytes(file.read_bytes()[: -schema.PAGE * pages])
    before = hashes(crashed)
    assert "drachma.db-wal" in before
    with pytest.raises(
        errors.RefusedFileError, match=r"damaged: .*; the last acknowledged revision is 111; .*as it is"
    ):
        await store.SqliteStore.open(crashed)
    assert hashes(crashed) == before


async def test_a_damaged_log_does_not_hide_newer_pages_of_the_database(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A checkpoint leaves its log in place; a valid part of the log has older pages than the database."""
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        for number in range(9):
            await objects.create(claim(number), store.fixed(b"1"))
        journal = objects._journal
        assert isinstance(journal, SqliteJournal)
        journal._thread.submit(lambda: None).result()
        monkeypatch.setattr("drachma.store.sqlite_journal._CHECKPOINT", 0)
        await objects.create(claim(9), store.fixed(b"1"))
        journal._thread.submit(lambda: None).result()
        crashed = copy(tmp_path / "data", tmp_path / "crashed")
    shorten(crashed / "drachma.db-wal")
    for _ in range(2):
        async with await store.SqliteStore.open(crashed) as objects:
            assert objects.revision == 11
            assert len(objects.list(CLAIMS).records) == 10
    assert "drachma.db-wal: damaged; drachma.db and drachma.redo have every write" in caplog.text
    assert (crashed / "drachma.db-wal.damaged").exists()


async def test_an_older_copy_of_the_database_is_refused(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        await objects.create(claim(0), store.fixed(b"1"))
    older = (tmp_path / "data" / "drachma.db").read_bytes()
    for number in (1, 2):
        async with await store.SqliteStore.open(tmp_path / "data") as objects:
            await objects.create(claim(number), store.fixed(b"1"))
    async with await store.SqliteStore.open(tmp_path / "data"):
        pass
    (tmp_path / "data" / "drachma.db").write_bytes(older)
    before = hashes(tmp_path / "data")
    with pytest.raises(
        errors.RefusedFileError, match=r"it has revision 2, the last acknowledged is 4, and 2 of the writes .* are lost"
    ):
        await store.SqliteStore.open(tmp_path / "data")
    assert hashes(tmp_path / "data") == before


async def test_a_damaged_newer_header_of_the_redo_log_is_refused(tmp_path: pathlib.Path) -> None:
    for number in range(2):
        async with await store.SqliteStore.open(tmp_path / "data") as objects:
            await objects.create(claim(number), store.fixed(b"1"))
            crashed = copy(tmp_path / "data", tmp_path / f"crashed{number}")
    flip(crashed / "drachma.redo", 0)
    (crashed / "drachma.db-wal").unlink()
    with pytest.raises(
        errors.RefusedFileError,
        match=r"damaged at its start; acknowledged writes go up to revision 3 at least, the database has revision 2",
    ):
        await store.SqliteStore.open(crashed)


async def test_compactions_are_restored_too(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        for number in range(20):
            await objects.create(claim(number), store.fixed(b"1"))
        await objects.delete(claim(3))
        await objects.compact(15)
        await objects.create(claim(30), store.fixed(b"1"))
        crashed = copy(tmp_path / "data", tmp_path / "crashed")
        want = [item.key for item in objects.list(CLAIMS).records]
    (crashed / "drachma.db-wal").unlink()
    for _ in range(2):
        async with await store.SqliteStore.open(crashed) as objects:
            assert [item.key for item in objects.list(CLAIMS).records] == want
            assert (objects.revision, objects.compacted) == (23, 15)


async def test_a_database_without_a_redo_log_gets_one(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that is interrupted before the database names its store is no reason to refuse the next one."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error", "drachma.redo")

    monkeypatch.setattr(redo.RedoLog, "create", fail)
    with pytest.raises(errors.RefusedFileError, match="Input/output error"):
        await store.SqliteStore.open(tmp_path)
    monkeypatch.undo()
    async with await store.SqliteStore.open(tmp_path) as objects:
        await objects.create(claim(0), store.fixed(b"1"))
    connection = sqlite3.connect(tmp_path / "drachma.db")
    (lineage,) = connection.execute("SELECT lineage FROM progress").fetchone()
    connection.close()
    assert lineage == redo.read(tmp_path / "drachma.redo").header.lineage


async def test_a_database_of_the_first_layout_gets_a_redo_log(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path) as objects:
        await objects.create(claim(0), store.fixed(b"1"))
    (tmp_path / "drachma.redo").unlink()
    connection = sqlite3.connect(tmp_path / "drachma.db", isolation_level=None)
    connection.execute("ALTER TABLE progress DROP COLUMN lineage")
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    for number in (1, 2):
        async with await store.SqliteStore.open(tmp_path) as objects:
            await objects.create(claim(number), store.fixed(b"1"))
            assert objects.revision == number + 2
    assert redo.read(tmp_path / "drachma.redo").acknowledged == 4
    assert (tmp_path / "drachma.db.layout-1").exists()


async def test_a_batch_that_failed_is_not_found_by_a_restart(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        await objects.create(claim(0), store.fixed(b"1"))
        journal = objects._journal
        assert isinstance(journal, SqliteJournal)
        journal._thread.submit(lambda: journal._connection.execute("PRAGMA query_only = 1")).result()
        with pytest.raises(errors.WriteFailedError, match="attempt to write a readonly database"):
            await objects.create(claim(1), store.fixed(b"1"))
        crashed = copy(tmp_path / "data", tmp_path / "crashed")
    async with await store.SqliteStore.open(crashed) as objects:
        assert [item.key for item in objects.list(CLAIMS).records] == [claim(0)]
        assert objects.revision == 2


async def test_a_failed_batch_that_stays_in_the_redo_log_stops_all_writes(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await store.SqliteStore.open(tmp_path) as objects:

        def fail(_file: int) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr("drachma.store.redo.os.fdatasync", fail)
        for number in range(2):
            with pytest.raises(errors.WriteFailedError, match="Input/output error"):
                await objects.create(claim(number), store.fixed(b"1"))
        monkeypatch.undo()
        with pytest.raises(errors.WriteFailedError, match="redo log cannot be written: Input/output error; start"):
            await objects.create(claim(3), store.fixed(b"1"))
