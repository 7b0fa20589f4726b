"""The store that lasts: every acknowledged write is on disk, and all objects are in memory for reading."""

import pathlib
from typing import Self

from drachma.store import engine, protocol, sqlite_journal


class SqliteStore(engine.Engine):
    @classmethod
    async def open(cls, path: pathlib.Path, *, limits: protocol.Limits | None = None) -> Self:
        """Opens the store in a data directory, which is made where it does not exist.

        Raises:
            errors.DirectoryInUseError: another process has it open.
            errors.RefusedFileError: its file is foreign, damaged or newer than this version.
            errors.WriteFailedError: the disk failed, or has no room for a new file.
        """
        log = sqlite_journal.SqliteJournal(path)
        committed = await log.open()
        return cls(committed, log, limits=limits or protocol.Limits())
