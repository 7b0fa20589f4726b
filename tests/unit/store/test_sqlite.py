"""The durable store: a file that persists, is checked, is locked, and may fail."""

import asyncio
import collections
import logging
import os
import pathlib
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable

import pytest

from drachma import errors, store
from drachma.store import schema

CLAIMS = "resource.k8s.io/resourceclaims"


def claim(name: str) -> store.Key:
    return store.Key(CLAIMS, "default", name)


async def fill(path: pathlib.Path, *, count: int = 50, limits: store.Limits | None = None) -> None:
    """A store with objects that were created, changed and deleted."""
    async with await store.SqliteStore.open(path, limits=limits) as objects:
        bodies = [store.fixed(b'{"n":%d,"fill":"%s"}' % (n, b"x" * 500)) for n in range(count)]
        made = await asyncio.gather(
            *(objects.create(claim(f"c{n}"), body, uid=f"u{n}") for n, body in enumerate(bodies))
        )
        for item in made[::2]:
            await objects.update(item.key, store.fixed(b'{"changed":true}'), revision=item.revision)
        for item in made[::5]:
            await objects.delete(item.key)


def picture(objects: store.Store) -> list[object]:
    """Everything one can see of a store, as values that compare."""
    versions = [objects.list(CLAIMS, revision=revision) for revision in range(objects.compacted, objects.revision + 1)]
    facts: list[object] = [objects.revision, objects.compacted]
    facts += [
        [(item.key, item.uid, item.create_revision, item.revision, item.data) for item in page.records]
        for page in versions
    ]
    return facts


@pytest.mark.parametrize("limits", [None, store.Limits(history_events=10)], ids=["whole-log", "compacted-log"])
async def test_everything_is_there_after_opening_again(tmp_path: pathlib.Path, limits: store.Limits | None) -> None:
    await fill(tmp_path, limits=limits)
    async with await store.SqliteStore.open(tmp_path, limits=limits) as objects:
        want = picture(objects)
        assert (objects.compacted > 1) == (limits is not None)
        watch = objects.watch(CLAIMS, after=objects.compacted)
        want_events = [(event.change, event.revision) for event in await watch.batch()]
        assert [revision for _, revision in want_events] == list(range(objects.compacted + 1, objects.revision + 1))
    async with await store.SqliteStore.open(tmp_path, limits=limits) as objects:
        assert picture(objects) == want
        watch = objects.watch(CLAIMS, after=objects.compacted)
        assert [(event.change, event.revision) for event in await watch.batch()] == want_events
        made = await objects.create(claim("new"), store.fixed(b"1"))
        assert made.revision == objects.revision == want[0] + 1  # type: ignore[operator]


async def test_the_revision_survives_when_all_rows_are_compacted(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path) as objects:
        await objects.create(claim("a"), store.fixed(b"1"))
        await objects.delete(claim("a"))
        await objects.compact(3)
    async with await store.SqliteStore.open(tmp_path) as objects:
        assert (objects.revision, objects.compacted) == (3, 3)
        assert (await objects.create(claim("a"), store.fixed(b"1"))).revision == 4
    assert rows(tmp_path) == [4]


def rows(path: pathlib.Path) -> list[int]:
    connection = sqlite3.connect(path / "drachma.db")
    found = [revision for (revision,) in connection.execute("SELECT revision FROM log ORDER BY 1")]
    connection.close()
    return found


async def test_compaction_removes_exactly_what_nobody_can_reach(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path) as objects:
        await objects.create(claim("stays"), store.fixed(b"1"))
        await objects.create(claim("changes"), store.fixed(b"1"))
        await objects.create(claim("goes"), store.fixed(b"1"))
        await objects.update(claim("changes"), store.fixed(b"2"), revision=3)
        await objects.delete(claim("goes"))
        await objects.update(claim("changes"), store.fixed(b"3"), revision=5)
        await objects.compact(6)
    assert rows(tmp_path) == [2, 5, 7]


async def test_every_commit_reaches_the_disk_before_it_is_acknowledged(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await store.SqliteStore.open(tmp_path) as objects:
        connection = objects._journal._connection  # type: ignore[attr-defined]
        read = objects._journal._thread.submit  # type: ignore[attr-defined]

        def pragma(name: str) -> object:
            return read(lambda: connection.execute(f"PRAGMA {name}").fetchone()[0]).result()

        assert pragma("journal_mode") == "wal"
        assert pragma("synchronous") == 1
        assert pragma("locking_mode") == "exclusive"
        assert pragma("wal_autocheckpoint") == 0
        synced: list[int] = []
        monkeypatch.setattr("drachma.store.redo.os.fdatasync", lambda file: synced.append(objects.revision))
        await objects.create(claim("a"), store.fixed(b"1"))
        assert synced == [1]


async def test_the_write_ahead_log_is_moved_into_the_file(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drachma.store.sqlite_journal._CHECKPOINT", 100_000)
    async with await store.SqliteStore.open(tmp_path) as objects:
        for number in range(100):
            await objects.create(claim(f"c{number}"), store.fixed(bytes(10_000)))
        assert (tmp_path / "drachma.db").stat().st_size > 800_000
        assert (tmp_path / "drachma.db-wal").stat().st_size < 800_000
    assert not (tmp_path / "drachma.db-wal").exists()


async def test_a_second_store_on_a_directory_is_refused(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path):
        with pytest.raises(
            errors.DirectoryInUseError,
            match=rf"data directory {tmp_path}: in use by another drachma \(process {os.getpid()}\); stop",
        ):
            await store.SqliteStore.open(tmp_path)
        code = (
            "import asyncio, pathlib, sys; from drachma import store; "
            "asyncio.run(store.SqliteStore.open(pathlib.Path(sys.argv[1])))"
        )
        second = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert "DirectoryInUseError: data directory" in second.stderr
    async with await store.SqliteStore.open(tmp_path):
        pass


async def test_a_file_locked_by_a_database_tool_is_refused(tmp_path: pathlib.Path) -> None:
    await fill(tmp_path)
    tool = sqlite3.connect(tmp_path / "drachma.db", isolation_level=None)
    tool.execute("BEGIN IMMEDIATE")
    with pytest.raises(errors.DirectoryInUseError, match="locked by another program"):
        await store.SqliteStore.open(tmp_path)
    tool.close()
    async with await store.SqliteStore.open(tmp_path):
        pass


def contents(path: pathlib.Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir() if file.name != "drachma.lock"}


def foreign_database(file: pathlib.Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE theirs (a)")
    connection.commit()
    connection.close()


def newer_layout(file: pathlib.Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION}")
    connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.close()


REFUSED: dict[str, tuple[Callable[[pathlib.Path], object], str]] = {
    "empty": (lambda file: file.write_bytes(b""), "not a SQLite database, or damaged at its start"),
    "text": (lambda file: file.write_text("hello\n" * 100), "not a SQLite database"),
    "foreign": (foreign_database, "a SQLite database of another program; it was left as it is: use another"),
    "newer": (
        newer_layout,
        f"layout {schema.VERSION + 1} of a newer drachma, this version knows layouts up to {schema.VERSION}",
    ),
    "stray-log": (
        lambda file: file.with_name("drachma.db-wal").write_bytes(b"frames"),
        "drachma.db-wal: belongs to a missing drachma.db",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
async def test_files_that_are_not_ours_are_refused_and_left_alone(tmp_path: pathlib.Path, kind: str) -> None:
    make, want = REFUSED[kind]
    make(tmp_path / "drachma.db")
    before = contents(tmp_path)
    with pytest.raises(errors.RefusedFileError, match=want):
        await store.SqliteStore.open(tmp_path)
    assert contents(tmp_path) == before


async def test_a_directory_that_cannot_be_one_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.RefusedFileError, match=r"data directory .*: cannot be used: Not a directory"):
        await store.SqliteStore.open(tmp_path / "file" / "data")


DAMAGE = {
    "flipped-data": "UPDATE log SET data = CAST('x' || substr(data, 2) AS BLOB) WHERE revision = 30",
    "swapped-name": "UPDATE log SET name = 'other' WHERE revision = 30",
    "lost-create": "DELETE FROM log WHERE revision = 20",
    "lost-change": "DELETE FROM log WHERE revision = 60",
    "no-progress": "DELETE FROM progress",
    "progress-too-far": "UPDATE progress SET compacted = 70",
    "progress-not-a-number": "UPDATE progress SET compacted = 'x'",
    "no-table": "DROP TABLE log",
}


@pytest.mark.parametrize("compacted", [False, True], ids=["whole-log", "compacted-log"])
@pytest.mark.parametrize("kind", DAMAGE)
async def test_damaged_contents_are_refused_and_left_alone(tmp_path: pathlib.Path, kind: str, compacted: bool) -> None:
    await fill(tmp_path)
    if compacted:
        async with await store.SqliteStore.open(tmp_path) as objects:
            await objects.compact(55)
    connection = sqlite3.connect(tmp_path / "drachma.db")
    # Every kind of damage is to a row that the compaction above leaves; dropping a table counts no rows.
    assert connection.execute(DAMAGE[kind]).rowcount in (1, -1)
    connection.commit()
    connection.close()
    before = contents(tmp_path)
    with pytest.raises(errors.RefusedFileError, match=r"damaged.*it was left as it is: restore a backup"):
        await store.SqliteStore.open(tmp_path)
    assert contents(tmp_path) == before


async def test_flipped_bytes_anywhere_never_give_wrong_objects(tmp_path: pathlib.Path) -> None:
    await fill(tmp_path)
    async with await store.SqliteStore.open(tmp_path) as objects:
        want = picture(objects)
    file = tmp_path / "drachma.db"
    whole = file.read_bytes()
    outcomes: collections.Counter[str] = collections.Counter()
    for position in range(0, len(whole), len(whole) // 60):
        file.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        try:
            async with await store.SqliteStore.open(tmp_path) as objects:
                assert picture(objects) == want
                outcomes["unused byte"] += 1
        except errors.RefusedFileError:
            outcomes["refused"] += 1
    assert outcomes["refused"] > 20


async def test_an_unfinished_new_file_is_made_again(tmp_path: pathlib.Path) -> None:
    (tmp_path / "drachma.db.new").write_bytes(b"half a file")
    async with await store.SqliteStore.open(tmp_path) as objects:
        assert objects.revision == 1
    assert not (tmp_path / "drachma.db.new").exists()


async def test_an_older_layout_is_brought_up_to_date_and_a_copy_kept(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(tmp_path)
    async with await store.SqliteStore.open(tmp_path) as objects:
        want = picture(objects)
    monkeypatch.setattr(schema, "VERSION", 4)
    monkeypatch.setattr(schema, "MIGRATIONS", {2: ["ALTER TABLE log ADD extra TEXT"], 3: ["CREATE TABLE more (a)"]})
    async with await store.SqliteStore.open(tmp_path) as objects:
        assert picture(objects) == want
    assert int.from_bytes((tmp_path / "drachma.db").read_bytes()[60:64]) == 4
    assert int.from_bytes((tmp_path / "drachma.db.layout-2").read_bytes()[60:64]) == 2
    async with await store.SqliteStore.open(tmp_path) as objects:
        assert picture(objects) == want
    monkeypatch.undo()
    with pytest.raises(errors.RefusedFileError, match="layout 4 of a newer drachma"):
        await store.SqliteStore.open(tmp_path)


async def test_a_migration_that_fails_changes_nothing(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(tmp_path)
    monkeypatch.setattr(schema, "VERSION", 3)
    monkeypatch.setattr(schema, "MIGRATIONS", {2: ["DROP TABLE progress", "DROP TABLE absent"]})
    with pytest.raises(errors.RefusedFileError, match="no such table: absent"):
        await store.SqliteStore.open(tmp_path)
    monkeypatch.setattr(schema, "MIGRATIONS", {})
    with pytest.raises(errors.RefusedFileError, match="layout 2, which this version cannot bring up to its own, 3"):
        await store.SqliteStore.open(tmp_path)
    monkeypatch.undo()
    async with await store.SqliteStore.open(tmp_path) as objects:
        assert objects.revision > 1


async def test_a_full_file_fails_writes_and_recovers(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path) as objects:
        kept = await objects.create(claim("kept"), store.fixed(bytes(1000)))
        journal = objects._journal
        limit = journal._thread.submit(  # type: ignore[attr-defined]
            lambda: journal._connection.execute("PRAGMA max_page_count = 6").fetchone()  # type: ignore[attr-defined]
        )
        limit.result()
        with pytest.raises(
            errors.DiskFullError, match=r"default/big: not written: data file .* no room is left on the disk"
        ):
            await objects.create(claim("big"), store.fixed(bytes(200_000)))
        assert objects.get(claim("kept")) is kept
        assert objects.get(claim("big")) is None
        journal._thread.submit(  # type: ignore[attr-defined]
            lambda: journal._connection.execute("PRAGMA max_page_count = 100000").fetchone()  # type: ignore[attr-defined]
        ).result()
        assert (await objects.create(claim("big"), store.fixed(bytes(200_000)))).revision == 3
    async with await store.SqliteStore.open(tmp_path) as objects:
        assert [item.key.name for item in objects.list(CLAIMS).records] == ["big", "kept"]


LIMITED = """
import asyncio, pathlib, resource, sys
from drachma import errors, store

def key(name):
    return store.Key("pods", "default", name)

async def main():
    async with await store.SqliteStore.open(pathlib.Path(sys.argv[1])) as objects:
        await objects.create(key("kept"), store.fixed(bytes(1000)))
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))
        results = await asyncio.gather(
            *(objects.create(key(f"big{n}"), store.fixed(bytes(100_000))) for n in range(3)),
            return_exceptions=True,
        )
        assert all(type(result) is errors.WriteFailedError for result in results), results
        assert "the write failed: File too large" in str(results[0]), results[0]
        assert [item.key.name for item in objects.list("pods").records] == ["kept"]
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await objects.create(key("later"), store.fixed(bytes(100_000)))

asyncio.run(main())
"""


async def test_writes_the_kernel_refuses_fail_together_and_later_ones_work(tmp_path: pathlib.Path) -> None:
    # In a process of its own, because the limit on the size of files holds for a whole process.
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path)], check=True)
    async with await store.SqliteStore.open(tmp_path) as objects:
        found = [(item.key.name, item.revision) for item in objects.list("pods").records]
        assert found == [("kept", 2), ("later", 3)]


async def test_a_failed_checkpoint_is_put_off(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("drachma.store.sqlite_journal._CHECKPOINT", 0)
    async with await store.SqliteStore.open(tmp_path) as objects:
        journal = objects._journal
        whole = journal._connection  # type: ignore[attr-defined]

        class Refusing:
            def execute(self, statement: str, *parameters: object) -> object:
                if "wal_checkpoint" in statement:
                    raise sqlite3.OperationalError("disk I/O error")
                return whole.execute(statement, *parameters)

        monkeypatch.setattr(journal, "_connection", Refusing())
        with caplog.at_level(logging.WARNING):
            await objects.create(claim("a"), store.fixed(b"1"))
            await objects.create(claim("b"), store.fixed(b"1"))
        assert "checkpoint put off: disk I/O error" in caplog.text
    async with await store.SqliteStore.open(tmp_path) as objects:
        assert objects.revision == 3
