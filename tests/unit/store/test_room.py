"""A full disk: commits that make room are accepted, and other commits are refused until there is room."""

import asyncio
import pathlib

import pytest

from drachma import errors, store
from drachma.store import reserve
from tests.unit.store.test_engine import HeldJournal, claim, held

FULL = errors.DiskFullError("data file drachma.db: no room is left on the disk; make room and try again")
OBJECT = b'{"metadata":{"name":"a"},"spec":"0123456789"}'
DELETING = b'{"metadata":{"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":"0123456789"}'


async def turn() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


async def fill_disk() -> tuple[store.Store, HeldJournal]:
    """Return a store with one object whose next write found no room."""
    objects, log = held()
    for name, answer in (("a", None), ("b", FULL)):
        write = asyncio.ensure_future(objects.create(claim(name), store.fixed(OBJECT)))
        await turn()
        log.has_room = False
        log.answer(answer)
        if answer is None:
            await write
        else:
            with pytest.raises(errors.DiskFullError):
                await write
    return objects, log


async def test_a_failed_write_shows_as_a_fault_until_one_succeeds() -> None:
    objects, log = held()
    assert objects.fault == ""
    for failure, want in ((errors.WriteFailedError("input/output error"), "disk failed"), (None, "")):
        write = asyncio.ensure_future(objects.create(claim("a"), store.fixed(OBJECT)))
        await turn()
        log.answer(failure)
        await asyncio.gather(write, return_exceptions=True)
        assert objects.fault == want


async def test_a_full_disk_refuses_creates_before_they_reach_it() -> None:
    objects, log = await fill_disk()
    count = len(log.batches)
    with pytest.raises(
        errors.DiskFullError, match="default/c: not written: no room is left on the disk; delete objects"
    ):
        await objects.create(claim("c"), store.fixed(OBJECT))
    with pytest.raises(errors.DiskFullError):
        await objects.update(claim("a"), store.fixed(OBJECT + b" "), revision=2)
    assert len(log.batches) == count
    assert objects.fault == "disk full"


@pytest.mark.parametrize("body", [OBJECT, OBJECT[:-1], DELETING], ids=["same-size", "smaller", "being-deleted"])
async def test_a_full_disk_takes_updates_that_need_no_room(body: bytes) -> None:
    objects, log = await fill_disk()
    write = asyncio.ensure_future(objects.update(claim("a"), store.fixed(body), revision=2))
    await turn()
    log.answer()
    assert (await write).revision == 3
    assert objects.fault == "disk full"


async def test_a_full_disk_takes_deletes_and_forgets_history_with_them() -> None:
    objects, log = await fill_disk()
    write = asyncio.ensure_future(objects.delete(claim("a")))
    await turn()
    compaction = log.batches[-1].compaction
    assert compaction is not None
    assert compaction.revision == 2
    log.answer()
    await write
    assert objects.get(claim("a")) is None


async def test_writes_go_on_when_there_is_room_again() -> None:
    objects, log = await fill_disk()
    log.has_room = True
    write = asyncio.ensure_future(objects.create(claim("c"), store.fixed(OBJECT)))
    await turn()
    log.answer()
    await write
    assert objects.fault == ""


async def test_a_health_check_alone_finds_out_that_there_is_room_again() -> None:
    objects, log = await fill_disk()
    log.has_room = True
    assert objects.fault == "disk full"
    await turn()
    assert objects.fault == ""


def test_the_reserve_takes_and_gives_back_space(tmp_path: pathlib.Path) -> None:
    space = reserve.Reserve(tmp_path / "reserve", size=2**20)
    assert space.hold()
    assert (tmp_path / "reserve").stat().st_blocks * 512 >= 2**20
    assert space.hold()
    space.release()
    assert not (tmp_path / "reserve").exists()


def test_a_disk_without_room_for_the_reserve_is_left_alone(tmp_path: pathlib.Path) -> None:
    assert not reserve.Reserve(tmp_path / "reserve", size=2**60).hold()
    assert not (tmp_path / "reserve").exists()
