"""What makes committed writes last: the contract between the engine and a journal, and the one that forgets.

The engine hands over one batch at a time and waits for its answer. ``sqlite_journal`` writes batches to disk;
``MemoryJournal`` keeps nothing.
"""

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias

import msgspec

from drachma import errors
from drachma.store import record, state


class Batch(msgspec.Struct, frozen=True):
    """The events of one commit or several, in revision order, and a compaction that goes with them."""

    events: Sequence[record.Event]
    compaction: state.Compaction | None = None


Done: TypeAlias = Callable[[errors.WriteFailedError | None], None]


class TellRoom(Protocol):
    def __call__(self, *, has_room: bool) -> None: ...


class Journal(Protocol):
    @property
    def patience(self) -> float:
        """Seconds for which a batch may fill as long as more comes; what a commit takes makes this worth while."""

    def commit(self, batch: Batch, done: Done) -> None:
        """Makes a batch last, all of it or nothing, then calls ``done`` from the event loop, never at once."""

    def regain_room(self, done: TellRoom) -> None:
        """Find out if there is room again after errors.DiskFullError, then call ``done`` from the event loop."""

    async def close(self) -> None:
        """Lets go of what the journal holds; no batch is under way."""


class MemoryJournal:
    patience: Final = 0.0

    def commit(self, batch: Batch, done: Done) -> None:
        asyncio.get_running_loop().call_soon(done, None)

    def regain_room(self, done: TellRoom) -> None:
        asyncio.get_running_loop().call_soon(functools.partial(done, has_room=True))

    async def close(self) -> None:
        return
