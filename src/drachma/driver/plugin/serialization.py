"""One call at a time: within a process, and by a lock on a file among all instances of a driver on a node."""

import asyncio
import contextlib
import fcntl
import pathlib
from collections.abc import AsyncIterator
from typing import Final

from drachma import errors
from drachma.runtime import clock

_POLL_SECONDS: Final = 0.005
"""Seconds between two tries to lock. Waiting in the kernel could not be cancelled."""


class Serialization:
    """A lock; with a ``path``, one that other processes respect too."""

    def __init__(self, path: pathlib.Path | None = None, *, time: clock.Clock) -> None:
        self._path: Final = path
        self._clock: Final = time
        self._turn: Final = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Waits for the lock and holds it.

        Raises:
            errors.DriverError: the file cannot be locked.
        """
        async with self._turn:
            if self._path is None:
                yield
                return
            try:
                file = self._path.open("a+b")
            except OSError as error:
                raise errors.DriverError(f"lock file: {error}") from error
            with file:
                while not _lock(file.fileno()):
                    await self._clock.sleep(_POLL_SECONDS)
                yield


def _lock(handle: int) -> bool:
    """Lock an open file if no other process has locked it; closing the file unlocks it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise errors.DriverError(f"lock file: {error}") from error
    return True
