"""Durability of commits: the contract between the engine and a journal, and the journal without a disk.

The engine passes one batch at a time and waits for its answer. ``sqlite_journal`` writes batches to disk;
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
    """Events of one or several commits in revision order, and a compaction that is committed with them."""

    events: Sequence[record.Event]
    compaction: state.Compaction | None = None


Done: TypeAlias = Callable[[errors.WriteFailedError | None], None]


class TellRoom(Protocol):
    def __call__(self, *, has_room: bool) -> None: ...


class Journal(Protocol):
    @property
    def patience(self) -> float:
        """Seconds for which a batch may fill while more writes arrive, given the cost of a commit."""

    def commit(self, batch: Batch, done: Done) -> None:
        """Make a batch durable, all of it or nothing, then call ``done`` from the event loop, never at once."""

    def regain_room(self, done: TellRoom) -> None:
        """Check if there is room again after errors.DiskFullError, then call ``done`` from the event loop."""

    async def close(self) -> None:
        """Release all resources of the journal; no batch is being written."""


class MemoryJournal:
    patience: Final = 0.0

    def commit(self, batch: Batch, done: Done) -> None:
        asyncio.get_running_loop().call_soon(done, None)

    def regain_room(self, done: TellRoom) -> None:
        asyncio.get_running_loop().call_soon(functools.partial(done, has_room=True))

    async def close(self) -> None:
        return
