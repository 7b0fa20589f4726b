"""Stores that are killed at any moment and damaged at any place: nothing acknowledged is lost without a word.

A store lives through random commits. Its files are copied as a killed process leaves them: after a commit, or with only
a part of the bytes that the next commit writes. Then one file is damaged at a random place. The next start has every
acknowledged write, or it is refused, names no other revision as the last acknowledged one, and changes no byte. After a
refusal, repair leaves a store that starts.
"""

import asyncio
import contextlib
import datetime as dt
import hashlib
import os
import pathlib
import random
import re
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drachma import errors, store
from drachma.store import repair, sqlite_journal

PODS = "pods"
FILES = ("drachma.db", "drachma.db-wal", "drachma.redo")
HEADERS = 8192
BLOCK = 4096
MEMORY = pathlib.Path("/dev/shm")
"""A file system that does not wait for a disk: thousands of files are written, and none has to last."""
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

Picture = tuple[int, dict[str, bytes]]


def picture(objects: store.Store) -> Picture:
    return objects.revision, {item.key.name: item.data for item in objects.list(PODS).records}


def key(number: int) -> store.Key:
    return store.Key(PODS, "default", f"p{number}")


async def commit(objects: store.SqliteStore, rng: random.Random) -> None:
    """Create, change, delete or compact something."""
    present = objects.list(PODS).records
    kind = rng.random()
    body = store.fixed(rng.randbytes(rng.choice((10, 600, 9000))))
    if kind < 0.1:
        await objects.compact(objects.revision)
    elif kind < 0.3 and present:
        await objects.delete(rng.choice(present).key)
    elif kind < 0.5 and present:
        held = rng.choice(present)
        await objects.update(held.key, body, revision=held.revision)
    else:
        numbers = rng.sample(range(10_000), rng.choice((1, 1, 3)))
        with contextlib.suppress(errors.AlreadyExistsError):
            await objects.commit([store.Create(key(number), body) for number in numbers])


def read_files(path: pathlib.Path) -> dict[str, bytes]:
    return {name: (path / name).read_bytes() for name in FILES if (path / name).exists()}


async def live(path: pathlib.Path, rng: random.Random, *, count: int) -> tuple[dict[str, bytes], Picture, Picture]:
    """Return files of a store after some commits, its acknowledged state, and the state after one more commit."""
    # Copies are taken while the journal's thread does nothing, so they are what a kill leaves.
    async with await store.SqliteStore.open(path, limits=store.Limits(history_events=8), reserve_bytes=0) as objects:
        journal = objects._journal
        assert isinstance(journal, sqlite_journal.SqliteJournal)
        for _ in range(count):
            await commit(objects, rng)
        journal._thread.submit(os.getpid).result()
        files, acknowledged = read_files(path), picture(objects)
        if rng.random() < 0.5:
            return files, acknowledged, acknowledged
        await commit(objects, rng)
        journal._thread.submit(os.getpid).result()
        return tear(files, read_files(path), rng), acknowledged, picture(objects)


def tear(before: dict[str, bytes], after: dict[str, bytes], rng: random.Random) -> dict[str, bytes]:
    """Return the files of a process that was killed while it appended to the redo log, before any checkpoint."""
    old, new = before["drachma.redo"], after["drachma.redo"]
    if len(old) != len(new):
        return before
    places = range(HEADERS, len(new), 64)
    changed = [place for place in places if old[place : place + 64] != new[place : place + 64]]
    end = rng.choice(changed) + rng.randrange(64) if changed else HEADERS
    return {**before, "drachma.redo": old[:HEADERS] + new[HEADERS:end] + old[end:]}


def lose_power(files: dict[str, bytes], rng: random.Random) -> dict[str, bytes]:
    """Return the files after a power cut: of the write-ahead log, which is not synced, any blocks may be missing."""
    whole = bytearray(files["drachma.db-wal"])
    for place in range(0, len(whole), BLOCK):
        if rng.random() < 0.3:
            whole[place : place + BLOCK] = bytes(len(whole[place : place + BLOCK]))
    return {**files, "drachma.db-wal": bytes(whole[: rng.randrange(len(whole) + 1)])}


def damage(files: dict[str, bytes], name: str, rng: random.Random) -> dict[str, bytes]:
    """Return the files with one of them damaged somewhere, or gone."""
    whole = files[name]
    place = rng.randrange(len(whole)) if whole else 0
    if name == "drachma.redo" and rng.random() < 0.8:
        # Most of it is empty room.
        place = rng.randrange(min(len(whole), 60_000))
    kind = rng.randrange(4)
    if kind == 0:
        return {other: data for other, data in files.items() if other != name}
    if kind == 1:
        return {**files, name: whole[:place]}
    length = 1 if kind == 2 else rng.choice((16, 4096, 40_000))
    part = bytes(byte ^ 0xFF for byte in whole[place : place + length])
    return {**files, name: whole[:place] + part + whole[place + length :]}


def write_files(path: pathlib.Path, files: dict[str, bytes]) -> None:
    path.mkdir()
    for name, data in files.items():
        (path / name).write_bytes(data)


def hashes(path: pathlib.Path) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in read_files(path).items()}


async def check(path: pathlib.Path, acknowledged: Picture, later: Picture) -> str:
    """Start on damaged files, and return "started" or "refused"."""
    before = hashes(path)
    refusal = ""
    try:
        objects = await store.SqliteStore.open(path, reserve_bytes=0)
    except errors.RefusedFileError as error:
        refusal = str(error)
    if refusal:
        assert hashes(path) == before, "a refused start changed files"
        for number in re.findall(r"last acknowledged (?:revision )?is (\d+)", refusal):
            assert int(number) <= max(acknowledged[0], later[0]), refusal
        return "refused"
    async with objects:
        assert picture(objects) in (acknowledged, later), "acknowledged writes are missing, and the start was silent"
    return "started"


async def check_repair(path: pathlib.Path, newest: int) -> None:
    if not any((path / name).exists() for name in ("drachma.db", "drachma.redo")):
        return
    refusal = ""
    try:
        report = repair.repair(path, now=NOW)
    except errors.RefusedFileError as error:
        refusal = str(error)
    if refusal:
        assert "of a newer drachma" in refusal, "only the number of the layout can keep repair away"
        return
    assert report is not None
    async with await store.SqliteStore.open(path, reserve_bytes=0) as objects:
        assert len(objects.list(PODS).records) == report.objects
        if report.last_acknowledged_revision is not None or report.last_database_revision > 1:
            assert objects.compacted > newest, "revisions were given out twice"


@contextlib.contextmanager
def quick(checkpoint: int) -> Iterator[None]:
    """Checkpoint often, and do not wait for the disk: a kill does not lose what the kernel has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("drachma.store.sqlite_journal._CHECKPOINT", checkpoint)
        patch.setattr("drachma.store.redo.os.fdatasync", lambda _: None)
        yield


@settings(max_examples=settings().max_examples // 3)
@given(st.integers(0, 2**32), st.integers(1, 25), st.sampled_from((0, 150_000, 2**30)), st.booleans())
def test_nothing_acknowledged_is_lost_in_silence(seed: int, count: int, checkpoint: int, is_damaged: bool) -> None:
    rng = random.Random(seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="drachma-damage-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        with quick(checkpoint):
            files, acknowledged, later = asyncio.run(live(folder / "data", rng, count=count))
            if not is_damaged:
                for name, left in (("killed", files), ("power", lose_power(files, rng))):
                    write_files(folder / name, left)
                    assert asyncio.run(check(folder / name, acknowledged, later)) == "started"
                return
            for number in range(4):
                path = folder / f"damaged{number}"
                name = rng.choice(sorted(files))
                write_files(path, damage(files, name, rng))
                if asyncio.run(check(path, acknowledged, later)) == "refused":
                    assert name != "drachma.db-wal", "the redo log has every write of the write-ahead log"
                    asyncio.run(check_repair(path, acknowledged[0]))
    finally:
        shutil.rmtree(folder)
