"""The data directory of a SQLite store: its files, and the lock that keeps other processes out.

The journal takes the lock before it reads any file. The kernel drops the lock when its process ends in any way, so a
stale lock file does no harm.
"""

import contextlib
import fcntl
import logging
import os
import pathlib
import stat

from drachma import errors

_logger = logging.getLogger(__name__)


class Directory:
    """A data directory that this process uses exclusively, until ``release``."""

    def __init__(self, path: pathlib.Path, *, lock: int) -> None:
        self.path = path
        self.file = path / "drachma.db"
        self.write_ahead_log = path / "drachma.db-wal"
        self.damaged_log = path / "drachma.db-wal.damaged"
        self.shared_memory = path / "drachma.db-shm"
        self.unfinished = path / "drachma.db.new"
        self.redo = path / "drachma.redo"
        self.inspection = path / "drachma.inspection"
        self._lock = lock

    def release(self) -> None:
        os.close(self._lock)

    def sync(self) -> None:
        """Make names in the directory durable; renaming a file alone does not."""
        handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def reserve_file(path: pathlib.Path) -> pathlib.Path:
    """Return the file that keeps space for a full disk."""
    return path / "drachma.reserve"


def acquire(path: pathlib.Path) -> Directory:
    """Lock a data directory, which is created if it does not exist.

    Raises:
        errors.DirectoryInUseError: another process, or another store of this one, uses it.
        errors.RefusedFileError: it cannot be created or written to.
    """
    lock_file = path / "drachma.lock"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _warn_of_others(path)
        lock = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise errors.RefusedFileError(
            f"data directory {path}: cannot be used: {error.strerror} ({error.filename})"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(lock, 20, 0).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise errors.DirectoryInUseError(
            f"data directory {path}: in use by another drachma (process {holder}); "
            "stop that one, or give this one a directory of its own"
        ) from error
    except OSError as error:
        os.close(lock)
        raise errors.RefusedFileError(
            f"data directory {path}: cannot be locked: {error.strerror}; use a directory on a local file system"
        ) from error
    # The process id only improves the message above; on a full disk the lock works without it.
    with contextlib.suppress(OSError):
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return Directory(path, lock=lock)


def _warn_of_others(path: pathlib.Path) -> None:
    """Warn if other users can write to the directory.

    It contains keys, tokens and secrets. Files have modes of their own, but a user with write permission can replace
    them.
    """
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
        _logger.warning("data directory %s: others may write to it (mode %04o); it should have mode 0700", path, mode)
