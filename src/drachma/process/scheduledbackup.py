"""Scheduled backups of a running server; only the newest are kept."""

import asyncio
import logging
import pathlib
from typing import Final

import msgspec
import prometheus_client

from drachma import errors
from drachma.runtime import clock as clocks
from drachma.store import online, sqlite

_SUFFIX: Final = ".drachma-backup"
_RETRY_SECONDS: Final = 60.0

_log = logging.getLogger(__name__)


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Folder of the backups, seconds between two of them, and the number to keep."""

    folder: pathlib.Path
    every: float
    keep: int


class ScheduledBackup:
    def __init__(
        self,
        schedule: Schedule,
        objects: sqlite.SqliteStore,
        *,
        clock: clocks.Clock,
        registry: prometheus_client.CollectorRegistry,
    ) -> None:
        self._schedule = schedule
        self._objects = objects
        self._clock = clock
        self._failures = prometheus_client.Counter(
            "drachma_store_backup_failures", "Scheduled backups that failed.", registry=registry
        )
        self._successes = prometheus_client.Counter(
            "drachma_store_backups", "Scheduled backups that were written.", registry=registry
        )
        self._last_success = prometheus_client.Gauge(
            "drachma_store_backup_last_success_timestamp_seconds",
            "Time of the last scheduled backup that was written, since 1970.",
            registry=registry,
        )

    async def run(self) -> None:
        """Write backups until it is cancelled; the first one is due when the newest is old enough."""
        await self._clock.sleep(await asyncio.to_thread(self._first_delay))
        while True:
            delay = self._schedule.every if await self.back_up() else min(_RETRY_SECONDS, self._schedule.every)
            await self._clock.sleep(delay)

    async def back_up(self) -> bool:
        """Write one backup and remove those that are too many; return False if it failed."""
        now = self._clock.utc()
        folder = self._schedule.folder
        path = folder / f"{now:%Y%m%dT%H%M%SZ}-{self._objects.revision}{_SUFFIX}"
        try:
            await asyncio.to_thread(folder.mkdir, 0o700, parents=True, exist_ok=True)
            summary = await online.write(self._objects, path, now=now)
            await asyncio.to_thread(self._remove_oldest)
        except (errors.StoreError, OSError) as error:
            self._failures.inc()
            _log.error("scheduled backup to %s failed: %s", folder, error)
            return False
        self._successes.inc()
        self._last_success.set(now.timestamp())
        _log.info("backup %s: revision %s, %s objects", path, summary.revision, summary.objects)
        return True

    def _first_delay(self) -> float:
        backups = self._backups()
        if not backups:
            return 0.0
        age = self._clock.utc().timestamp() - backups[-1].stat().st_mtime
        return min(max(0.0, self._schedule.every - age), self._schedule.every)

    def _backups(self) -> list[pathlib.Path]:
        """Return complete backups, oldest first; their names begin with their time."""
        return sorted(self._schedule.folder.glob(f"*{_SUFFIX}"))

    def _remove_oldest(self) -> None:
        for path in self._backups()[: -self._schedule.keep]:
            path.unlink(missing_ok=True)
        for path in self._schedule.folder.glob(f"*{_SUFFIX}.partial"):
            path.unlink(missing_ok=True)
