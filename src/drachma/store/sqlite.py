"""The store that lasts: every acknowledged write is on disk, and all objects are in memory for reading."""

import pathlib
from typing import Self

from drachma.store import engine, protocol, reserve, sqlite_journal


class SqliteStore(engine.Engine):
    @classmethod
    async def open(
        cls, path: pathlib.Path, *, limits: protocol.Limits | None = None, reserve_bytes: int = reserve.SIZE
    ) -> Self:
        """Open the store in a data directory, which is made if it does not exist.

        ``reserve_bytes`` of disk space are kept for the time when the disk is full.

        Raises:
            errors.DirectoryInUseError: another process has it open.
            errors.RefusedFileError: its file is foreign, damaged or newer than this version.
            errors.WriteFailedError: the disk failed, or has no room for a new file.
        """
        log = sqlite_journal.SqliteJournal(path, reserve_bytes=reserve_bytes)
        committed = await log.open()
        return cls(committed, log, limits=limits or protocol.Limits())
