"""The reserve: disk space that the journal keeps for the time when the disk is full.

A full disk must not keep users from deleting objects, which is how they make room. The journal gives the reserve back
when a write finds no room, and takes it again when there is enough of it.
"""

import os
import pathlib
from typing import Final

SIZE: Final = 16 * 2**20
"""Default bytes. Half of it is for a checkpoint of a whole write-ahead log, the rest for deletes."""


class Reserve:
    """A file that only takes space."""

    def __init__(self, path: pathlib.Path, *, size: int) -> None:
        self._path = path
        self.size: Final = size

    def hold(self) -> bool:
        """Take the space, unless the disk would have less left than the reserve; return True if it is held."""
        if self._is_held():
            return True
        try:
            if _free(self._path.parent) < 2 * self.size:
                return False
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                if self.size:
                    os.posix_fallocate(file, 0, self.size)
            finally:
                os.close(file)
        except OSError:
            self.release()
            return False
        return True

    def release(self) -> None:
        """Give the space back. Raises OSError."""
        self._path.unlink(missing_ok=True)

    def _is_held(self) -> bool:
        try:
            return self._path.stat().st_size >= self.size
        except OSError:
            return False


def _free(folder: pathlib.Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize
