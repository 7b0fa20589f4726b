"""What the steps of a write look at and change: an object on its way into the store, and one on its way out."""

from typing import Any, Final, NamedTuple

from drachma.server.calls import options
from drachma.server.surface.strategy import Subject, Write
from drachma.store import record


class Proposal:
    """An object that is to be stored.

    Steps replace or change ``subject``. ``stored`` is the version that it changes and ``old`` the same as the kind's
    strategy has it; both are None for a new object. ``document`` is the form that is stored, once that is made.
    """

    __slots__ = ("document", "old", "options", "stored", "strategy", "subject", "write")

    def __init__(
        self,
        subject: Subject,
        write: Write,
        *,
        options: options.WriteOptions,
        stored: record.Record | None = None,
    ) -> None:
        self.subject = subject
        self.write = write
        self.strategy: Final = write.served.strategy
        self.options = options
        self.stored = stored
        self.old: Subject | None = None
        self.document: dict[str, Any] = {}


class Removal(NamedTuple):
    """An object that is to be deleted, or to begin its end."""

    stored: record.Record
    write: Write
    options: options.DeleteOptions
