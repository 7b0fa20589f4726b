"""Room on the disk as the engine knows it: which commits may go on while the disk is full.

After a write that found no room, only commits that make room are accepted: deletes, and updates that make no object
larger. Before each of them, and when a health check looks, the journal is asked if there is room again.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from drachma import errors
from drachma.store import journal, record

_DELETION_BYTES: Final = 4096
"""Growth of an object that is being deleted, such as its deletionTimestamp and its managers."""


class Room:
    def __init__(self, log: journal.Journal) -> None:
        self._journal = log
        self._failure: errors.WriteFailedError | None = None
        self._answer: asyncio.Future[None] | None = None
        self.is_full = False
        """True while the last answer of the journal was that the disk is full."""

    @property
    def fault(self) -> str:
        """Reason why writes fail, or empty. A full disk is checked again, for the next call."""
        if self._failure is None:
            return ""
        if not self.is_full:
            return "disk failed"
        self._ask()
        return "disk full"

    def note(self, failure: errors.WriteFailedError | None) -> None:
        """Take the journal's answer to a batch; a success while the disk is full says nothing of other writes."""
        if failure is not self._failure and (failure is not None or not self.is_full):
            self._failure = failure
            self.is_full = isinstance(failure, errors.DiskFullError)

    def check(self, events: Sequence[record.Event]) -> None:
        """Refuse a commit that needs room while there is none. Raises errors.DiskFullError."""
        if self.is_full and not _makes_room(events):
            key = events[0].record.key
            raise errors.DiskFullError(
                f"{key}: not written: no room is left on the disk; delete objects, or make room and try again"
            )

    async def regain(self) -> None:
        """Wait until the journal has said if there is room again."""
        await asyncio.shield(self._ask())

    def _ask(self) -> asyncio.Future[None]:
        if self._answer is None:
            self._answer = asyncio.get_running_loop().create_future()
            self._journal.regain_room(self._take_answer)
        return self._answer

    def _take_answer(self, *, has_room: bool) -> None:
        answer, self._answer = self._answer, None
        if has_room and self.is_full:
            self._failure = None
            self.is_full = False
        if answer is not None and not answer.done():
            answer.set_result(None)


def _makes_room(events: Sequence[record.Event]) -> bool:
    """Return True if a commit deletes an object, or makes none larger.

    Objects with finalizers are updated before they are deleted, so an object that is being deleted may grow a little.
    """
    if any(event.change is record.Change.DELETED for event in events):
        return True
    return all(event.previous is not None and _growth(event) <= 0 for event in events)


def _growth(event: record.Event) -> int:
    assert event.previous is not None
    growth = len(event.record.data) - len(event.previous.data)
    if 0 < growth <= _DELETION_BYTES:
        value = event.record.value
        metadata = value.get("metadata") if isinstance(value, dict) else None
        if isinstance(metadata, dict) and "deletionTimestamp" in metadata:
            return 0
    return growth
