"""Refusals for want of an object that a controller makes: the dispatcher waits a moment for it and tries again."""

from typing import Final

from drachma.server import status
from drachma.store import record


class AbsentObjectError(status.StatusError):
    """A write is refused because there is no object under a key, which may be there in a moment."""

    def __init__(self, refusal: status.StatusError, key: record.Key) -> None:
        super().__init__(refusal.document)
        self.key: Final = key
