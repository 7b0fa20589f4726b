"""Repair saves everything intact, says what is lost, and begins a lineage that no client has seen."""

import datetime as dt
import json
import pathlib

import pytest

from drachma import errors, store
from drachma.store import lineage, repair, schema
from drachma.store.sqlite_journal import SqliteJournal
from tests.unit.store import test_inspection
from tests.unit.store.test_inspection import CLAIMS, WRITES, claim, copy, crashed, damage_both_logs, hashes

__all__ = ["crashed"]

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
ASIDE = "damaged-20260102T030405Z"


async def stored_names(path: pathlib.Path) -> list[str]:
    async with await store.SqliteStore.open(path) as objects:
        return [item.key.name for item in objects.list(CLAIMS).records]


async def test_an_intact_store_is_left_alone(crashed: pathlib.Path) -> None:
    before = hashes(crashed)
    assert repair.repair(crashed, now=NOW) is None
    assert hashes(crashed) == before


async def test_a_lost_write_is_reported_and_the_rest_saved(crashed: pathlib.Path) -> None:
    damage_both_logs(crashed)
    before = hashes(crashed)
    report = repair.repair(crashed, now=NOW)
    assert report is not None
    assert (report.last_acknowledged_revision, report.lost_writes) == (WRITES + 1, 1)
    assert report.objects == WRITES - 1
    assert hashes(crashed / ASIDE).items() >= before.items()
    written = json.loads((crashed / ASIDE / "report.json").read_text())
    assert written["lostRevisions"] == [list(each) for each in report.lost_revisions]
    ((lost, _),) = report.lost_revisions
    want = [claim(number).name for number in range(WRITES) if number != lost - 2]
    assert await stored_names(crashed) == want


async def test_clients_begin_again_after_a_repair(crashed: pathlib.Path) -> None:
    damage_both_logs(crashed)
    repair.repair(crashed, now=NOW)
    async with await store.SqliteStore.open(crashed) as objects:
        assert objects.revision == objects.compacted == WRITES + 1 + lineage.BUMP
        with pytest.raises(errors.GoneError):
            objects.watch(CLAIMS, after=WRITES + 1)
        made = await objects.create(claim(9999), store.fixed(b"1"))
        assert made.revision == objects.compacted + 1
        held = objects.list(CLAIMS).records[0]
        await objects.update(held.key, store.fixed(b"2"), revision=held.revision)


@pytest.mark.parametrize("kind", test_inspection.REFUSALS)
async def test_every_refused_store_can_be_repaired(crashed: pathlib.Path, kind: str) -> None:
    damage, _ = test_inspection.REFUSALS[kind]
    damage(crashed)
    report = repair.repair(crashed, now=NOW)
    assert report is not None
    assert len(await stored_names(crashed)) == report.objects


async def test_damaged_pages_cost_only_their_own_rows(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with await store.SqliteStore.open(tmp_path) as objects:
        for number in range(WRITES):
            await objects.create(claim(number), store.fixed(bytes(1000)))
    file = tmp_path / "drachma.db"
    whole = bytearray(file.read_bytes())
    page = schema.PAGE * (len(whole) // schema.PAGE // 2)
    whole[page : page + schema.PAGE] = bytes(schema.PAGE)
    file.write_bytes(bytes(whole))
    (tmp_path / "drachma.redo").unlink()
    with pytest.raises(errors.DamagedFileError, match="drachma store repair --data"):
        await store.SqliteStore.open(tmp_path)
    report = repair.repair(tmp_path, now=NOW)
    assert report is not None
    assert report.last_acknowledged_revision is None
    assert 0 < report.lost_writes < 20
    assert report.objects == WRITES - report.lost_writes


async def test_deleted_objects_stay_deleted(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        for number in range(5):
            await objects.create(claim(number), store.fixed(b"1"))
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        await objects.delete(claim(1))
        await objects.compact(objects.revision)
        await objects.create(claim(7), store.fixed(b"1"))
        await objects.create(claim(8), store.fixed(b"1"))
        crashed = copy(tmp_path / "data", tmp_path / "crashed")
    (crashed / "drachma.db-wal").unlink()
    redo_log = crashed / "drachma.redo"
    whole = redo_log.read_bytes()
    redo_log.write_bytes(whole.replace(b"c0007", b"c0006"))
    report = repair.repair(crashed, now=NOW)
    assert report is not None
    assert report.lost_revisions == [(8, 8)]
    assert await stored_names(crashed) == [claim(number).name for number in (0, 2, 3, 4, 8)]


async def test_a_damaged_log_does_not_hide_rows_of_the_database(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await store.SqliteStore.open(tmp_path / "data") as objects:
        for number in range(WRITES):
            await objects.create(claim(number), store.fixed(bytes(1000)))
        journal = objects._journal
        assert isinstance(journal, SqliteJournal)
        journal._thread.submit(lambda: None).result()
        monkeypatch.setattr("drachma.store.sqlite_journal._CHECKPOINT", 0)
        await objects.create(claim(WRITES), store.fixed(bytes(1000)))
        journal._thread.submit(lambda: None).result()
        crashed = copy(tmp_path / "data", tmp_path / "crashed")
    test_inspection.shorten(crashed / "drachma.db-wal")
    file = crashed / "drachma.db"
    whole = bytearray(file.read_bytes())
    whole[-schema.PAGE :] = bytes(schema.PAGE)
    file.write_bytes(whole)
    report = repair.repair(crashed, now=NOW)
    assert report is not None
    assert 0 < report.lost_writes < 20
    assert report.objects == WRITES + 1 - report.lost_writes


async def test_an_interrupted_repair_can_be_run_again(crashed: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage_both_logs(crashed)

    def fail(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(schema, "install", fail)
    with pytest.raises(errors.WriteFailedError, match=r"cannot be repaired: .*No space left"):
        repair.repair(crashed, now=NOW)
    monkeypatch.undo()
    report = repair.repair(crashed, now=NOW)
    assert report is not None
    assert len(await stored_names(crashed)) == WRITES - 1


async def test_files_of_others_are_not_repaired(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.RefusedFileError, match="there is no store in it"):
        repair.repair(tmp_path, now=NOW)
    async with await store.SqliteStore.open(tmp_path):
        with pytest.raises(errors.DirectoryInUseError):
            repair.repair(tmp_path, now=NOW)
