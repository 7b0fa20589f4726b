"""The durable store: every acknowledged write is on disk, and all objects are in memory for reading."""

import pathlib
from typing import Final, Self

from drachma.store import cipher, engine, protocol, reserve, sqlite_journal, state

_PLAIN: Final = cipher.Plain()


class SqliteStore(engine.Engine):
    def __init__(
        self, committed: state.State, log: sqlite_journal.SqliteJournal, *, seal: cipher.Cipher, limits: protocol.Limits
    ) -> None:
        super().__init__(committed, log, limits=limits)
        self.cipher: Final = seal
        self._file_journal = log

    @classmethod
    async def open(
        cls,
        path: pathlib.Path,
        *,
        limits: protocol.Limits | None = None,
        seal: cipher.Cipher = _PLAIN,
        reserve_bytes: int = reserve.SIZE,
    ) -> Self:
        """Open the store in a data directory, which is made if it does not exist.

        ``reserve_bytes`` of disk space are kept for the time when the disk is full.

        Raises:
            errors.DirectoryInUseError: another process has it open.
            errors.RefusedFileError: its file is foreign, damaged or newer than this version.
            errors.CipherError: an object cannot be decrypted.
            errors.WriteFailedError: the disk failed, or has no room for a new file.
        """
        log = sqlite_journal.SqliteJournal(path, seal=seal, reserve_bytes=reserve_bytes)
        committed = await log.open()
        return cls(committed, log, seal=seal, limits=limits or protocol.Limits())

    @property
    def lineage(self) -> str:
        """Name of the store, which changes when it is repaired or restored."""
        return self._file_journal.lineage

    async def vacuum(self) -> None:
        """Give unused room of the database back to the disk; writes wait for as long as that takes.

        Raises:
            errors.WriteFailedError: the disk failed, or has no room for a second copy of the database.
        """
        await self._file_journal.vacuum()
