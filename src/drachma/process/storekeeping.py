"""Upkeep of a data directory while a server has it open: its socket, its keys, and its backups."""

import asyncio
import contextlib
import logging
import pathlib
from typing import Final

import msgspec
import prometheus_client

from drachma import errors
from drachma.process import encryption, scheduledbackup, storesocket
from drachma.runtime import clock
from drachma.store import cipher, reserve, sqlite

_KEY_SECONDS: Final = 60.0
"""Time between two checks for a changed key of a key plugin, as upstream has it."""

_log = logging.getLogger(__name__)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Reserve for a full disk, encryption at rest, and scheduled backups."""

    reserve_bytes: int = reserve.SIZE
    encryption_file: pathlib.Path | None = None
    backups: scheduledbackup.Schedule | None = None


class Keeper(msgspec.Struct, frozen=True, kw_only=True):
    """An open store with everything that its upkeep needs."""

    store: sqlite.SqliteStore
    folder: pathlib.Path
    encryption: encryption.Encryption | None
    backups: scheduledbackup.Schedule | None


async def open_store(folder: pathlib.Path, options: Options) -> Keeper:
    """Open the store of a data directory, with the keys that its objects need.

    Raises:
        errors.StoreError: the store cannot be opened.
        errors.InvalidValueError: the encryption configuration is not valid.
    """
    keys = None
    if options.encryption_file is not None:
        keys = await asyncio.to_thread(encryption.load, options.encryption_file)
    store = await sqlite.SqliteStore.open(
        folder, seal=cipher.Plain() if keys is None else keys, reserve_bytes=options.reserve_bytes
    )
    return Keeper(store=store, folder=folder, encryption=keys, backups=options.backups)


async def keep(keeper: Keeper | None, registry: prometheus_client.CollectorRegistry) -> None:
    """Look after a store until it is cancelled; a store in memory needs nothing."""
    if keeper is None:
        return
    time = clock.SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(storesocket.serve(keeper.store, keeper.folder, utc=time.utc))
        except errors.RefusedFileError as error:
            _log.error("drachma store cannot reach this server: %s", error)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        if keeper.backups is not None:
            backup = scheduledbackup.ScheduledBackup(keeper.backups, keeper.store, clock=time, registry=registry)
            tasks.create_task(backup.run())
        while True:
            await time.sleep(_KEY_SECONDS)
            if keeper.encryption is not None:
                await _refresh_keys(keeper.encryption)


async def _refresh_keys(keys: encryption.Encryption) -> None:
    try:
        await asyncio.to_thread(keys.refresh)
    except errors.CipherError as error:
        # The key that is in use still works.
        _log.error("encryption at rest: %s", error)
