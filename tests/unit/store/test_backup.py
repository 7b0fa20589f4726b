"""Backups: consistent, complete or refused, continued after an interruption, and restored under new revisions."""

import datetime as dt
import pathlib

import pytest

from drachma import errors, store
from drachma.store import backupfile, lineage, offline, online, row
from drachma.store.cipher import Untouched

PODS = "pods"
NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


def key(number: int, resource: str = PODS) -> store.Key:
    return store.Key(resource, "default", f"p{number:04}")


async def fill(objects: store.SqliteStore, count: int) -> None:
    creates = [
        store.Create(key(number), store.fixed(b'{"n":%d}' % number), uid=f"u{number}") for number in range(count)
    ]
    await objects.commit(creates)
    await objects.create(store.Key("apps/deployments", "a", "web"), store.fixed(b"{}"))


async def contents(path: pathlib.Path) -> list[object]:
    async with await store.SqliteStore.open(path) as objects:
        records = [item for resource in objects.resources for item in objects.list(resource).records]
        return [(item.key, item.uid, item.create_revision, item.revision, item.data) for item in records]


async def test_a_backup_is_one_revision_of_a_store_that_is_written_to(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        await fill(objects, 600)
        parts = online.chunks(objects, now=NOW)
        head = await anext(parts)
        first = await anext(parts)
        held = objects.get(key(599))
        assert held is not None
        await objects.update(held.key, store.fixed(b'"later"'), revision=held.revision)
        await objects.delete(key(0))
        rest = [part async for part in parts]
    assert isinstance(head, backupfile.Head)
    rows = [each for part in (first, *rest) if isinstance(part, backupfile.Rows) for each in part.rows]
    assert head.revision == 602
    assert [(each[6], each[8]) for each in rows][-1] == ("p0599", b'{"n":599}')
    assert len(rows) == 601


@pytest.mark.parametrize("is_open", [True, False], ids=["running", "stopped"])
async def test_a_restored_store_has_the_same_objects_and_later_revisions(tmp_path: pathlib.Path, is_open: bool) -> None:
    backup = tmp_path / "backup"
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        await fill(objects, 300)
        await objects.delete(key(7))
        if is_open:
            summary = await online.write(objects, backup, now=NOW)
    if not is_open:
        summary = offline.back_up(tmp_path / "data", backup, now=NOW)
    assert (summary.revision, summary.objects, summary.time) == (303, 300, "2026-01-02T03:04:05Z")
    assert backupfile.verify(backup) == summary
    assert offline.restore(backup, tmp_path / "restored") == summary
    assert await contents(tmp_path / "restored") == await contents(tmp_path / "data")
    async with await store.SqliteStore.open(tmp_path / "restored") as objects:
        assert objects.revision == objects.compacted == 303 + lineage.BUMP
        with pytest.raises(errors.GoneError):
            objects.watch(PODS, after=303)
        held = objects.get(key(8))
        assert held is not None
        assert (await objects.delete(held.key, revision=held.revision)).revision == 304 + lineage.BUMP


async def test_an_interrupted_backup_is_continued(tmp_path: pathlib.Path) -> None:
    backup = tmp_path / "backup"
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        await fill(objects, 1000)
        with backupfile.Writer(backup) as writer:
            parts = online.chunks(objects, now=NOW)
            head = await anext(parts)
            assert isinstance(head, backupfile.Head)
            writer.begin(head)
            for _ in range(2):
                part = await anext(parts)
                assert isinstance(part, backupfile.Rows)
                writer.add(part)
        partial = tmp_path / "backup.partial"
        # The last chunk was torn by the interruption.
        partial.write_bytes(partial.read_bytes() + b"half a chunk")
        await objects.create(key(5000), store.fixed(b"{}"))
        with backupfile.Writer(backup) as writer:
            assert writer.last_key == key(255)
            count = 0
            async for part in online.chunks(objects, now=NOW, resume=writer.head, after=writer.last_key):
                if isinstance(part, backupfile.Head):
                    writer.begin(part)
                else:
                    writer.add(part)
                    count += len(part.rows)
            summary = writer.finish()
    assert (summary.revision, summary.objects, count) == (1002, 1001, 1001 - 257)
    assert not partial.exists()
    backupfile.verify(backup)


async def test_a_backup_begins_again_when_its_revision_is_compacted(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        await fill(objects, 5)
        stale = backupfile.Head(lineage=objects.lineage, revision=3, time="")
        await objects.compact(objects.revision)
        parts = [part async for part in online.chunks(objects, now=NOW, resume=stale, after=key(3))]
    assert isinstance(parts[0], backupfile.Head)
    assert parts[0].revision == 7
    assert sum(len(part.rows) for part in parts[1:] if isinstance(part, backupfile.Rows)) == 6


@pytest.mark.parametrize(
    ("place", "want"),
    [
        pytest.param(0, "not a backup of drachma", id="start"),
        pytest.param(60, "a chunk", id="head"),
        pytest.param(3000, "checksum of a chunk does not match", id="middle"),
        pytest.param(-10, "checksum of a chunk does not match", id="summary"),
    ],
)
async def test_a_damaged_backup_is_refused_before_anything_is_made(
    tmp_path: pathlib.Path, place: int, want: str
) -> None:
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        await fill(objects, 100)
        await online.write(objects, tmp_path / "backup", now=NOW)
    whole = bytearray((tmp_path / "backup").read_bytes())
    whole[place] ^= 0xFF
    (tmp_path / "backup").write_bytes(whole)
    with pytest.raises(errors.RefusedFileError, match=want):
        offline.restore(tmp_path / "backup", tmp_path / "restored")
    assert not (tmp_path / "restored").exists()


async def test_a_cut_off_backup_is_refused(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        await fill(objects, 100)
        await online.write(objects, tmp_path / "backup", now=NOW)
    with pytest.raises(errors.RefusedFileError, match="exists; choose another name"):
        offline.back_up(tmp_path / "data", tmp_path / "backup", now=NOW)
    whole = (tmp_path / "backup").read_bytes()
    chunk = len(backupfile.encode(backupfile.Summary(revision=1, time="", objects=1, bytes=1, sha256="")))
    (tmp_path / "backup").write_bytes(whole[: -chunk - 100])
    with pytest.raises(errors.DamagedFileError):
        backupfile.verify(tmp_path / "backup")


async def test_a_store_is_not_restored_over_another(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        await fill(objects, 3)
        await online.write(objects, tmp_path / "backup", now=NOW)
        with pytest.raises(errors.DirectoryInUseError):
            offline.restore(tmp_path / "backup", tmp_path / "data")
    before = await contents(tmp_path / "data")
    with pytest.raises(
        errors.RefusedFileError, match=r"there is a store in it \(drachma.db\); choose another directory"
    ):
        offline.restore(tmp_path / "backup", tmp_path / "data")
    assert await contents(tmp_path / "data") == before


async def test_check_reads_everything(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path) as objects:
        await fill(objects, 50)
    facts = offline.check(tmp_path)
    assert (facts.revision, facts.objects, facts.resources, facts.restored_commits) == (52, 51, 2, 0)
    with pytest.raises(errors.RefusedFileError, match="does not exist"):
        offline.check(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(errors.RefusedFileError, match="there is no store in it"):
        offline.check(tmp_path / "empty")


async def test_check_finds_a_body_that_is_no_json(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path) as objects:
        await objects.create(key(0), store.fixed(b"not json"))
    with pytest.raises(errors.DamagedFileError, match="pods default/p0000 at revision 2 is not JSON"):
        offline.check(tmp_path)


async def test_vacuum_gives_room_back(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "drachma.db"
    async with await store.SqliteStore.open(tmp_path, seal=Untouched()) as objects:
        await objects.commit([store.Create(key(number), store.fixed(bytes(20_000))) for number in range(50)])
        await objects.commit([store.Delete(key(number)) for number in range(49)])
        await objects.compact(objects.revision)
        await objects.vacuum()
        assert file.stat().st_size < 200_000
        await objects.create(key(60), store.fixed(b"{}"))
    assert [item[0] for item in await contents(tmp_path) if isinstance(item, tuple)] == [key(49), key(60)]


def test_a_row_of_an_object_has_no_history() -> None:
    item = store.Record(key(1), "u", 5, 9, b"{}")
    made = row.make_object_row(item, Untouched())
    assert row.is_intact(made)
    assert made[:4] == (9, 0, 5, 0)
