"""Scheduled backups: when they are due, how many are kept, and that a failure shows."""

import asyncio
import os
import pathlib
from collections.abc import AsyncIterator

import prometheus_client
import pytest

from drachma import store
from drachma.process import scheduledbackup
from drachma.store import backupfile
from drachma.testing import manualclock


class Clock(manualclock.ManualClock):
    """Notes how long the schedule sleeps, and wakes it at once."""

    def __init__(self, sleeps: int) -> None:
        super().__init__()
        self.slept: list[float] = []
        self._left = sleeps

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) > self._left:
            raise asyncio.CancelledError
        self._now += seconds


@pytest.fixture
async def objects(tmp_path: pathlib.Path) -> AsyncIterator[store.SqliteStore]:
    async with await store.SqliteStore.open(tmp_path / "data") as made:
        await made.create(store.Key("pods", "default", "a"), store.fixed(b"{}"))
        yield made


async def run(
    objects: store.SqliteStore, folder: pathlib.Path, *, sleeps: int, keep: int = 2
) -> tuple[Clock, prometheus_client.CollectorRegistry]:
    clock, registry = Clock(sleeps), prometheus_client.CollectorRegistry()
    schedule = scheduledbackup.Schedule(folder=folder, every=3600.0, keep=keep)
    backup = scheduledbackup.ScheduledBackup(schedule, objects, clock=clock, registry=registry)
    with pytest.raises(asyncio.CancelledError):
        await backup.run()
    return clock, registry


async def test_the_newest_are_kept(objects: store.SqliteStore, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "backups"
    clock, registry = await run(objects, folder, sleeps=4)
    assert clock.slept == [0.0, 3600.0, 3600.0, 3600.0, 3600.0]
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["20260101T020000Z-2.drachma-backup", "20260101T030000Z-2.drachma-backup"]
    assert backupfile.verify(folder / names[0]).objects == 1
    assert registry.get_sample_value("drachma_store_backups_total") == 4
    assert registry.get_sample_value("drachma_store_backup_last_success_timestamp_seconds") == 1767236400


async def test_a_failure_is_counted_logged_and_tried_again_soon(
    objects: store.SqliteStore, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "backups").write_text("a file is in the way")
    clock, registry = await run(objects, tmp_path / "backups", sleeps=2)
    assert clock.slept == [0.0, 60.0, 60.0]
    assert registry.get_sample_value("drachma_store_backup_failures_total") == 2
    assert "failed: [Errno 17] File exists" in caplog.text


async def test_a_restart_waits_for_the_rest_of_the_time(objects: store.SqliteStore, tmp_path: pathlib.Path) -> None:
    recent = tmp_path / "20251231T234000Z-1.drachma-backup"
    recent.write_bytes(b"")
    moment = manualclock.START.timestamp() - 1200
    os.utime(recent, (moment, moment))
    clock, _ = await run(objects, tmp_path, sleeps=1)
    assert clock.slept == [2400.0, 3600.0]


async def test_unfinished_backups_of_a_killed_server_are_removed(
    objects: store.SqliteStore, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "20251231T000000Z-1.drachma-backup.partial").write_bytes(b"half")
    await run(objects, tmp_path, sleeps=1)
    assert [path.name for path in tmp_path.glob("*.partial")] == []
