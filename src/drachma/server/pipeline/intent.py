"""Intents: changes that calls ask for, decided on the stored object.

Creating, changing, deleting, binding and marking a pod are intents. :mod:`drachma.server.pipeline.commit` has an intent
decide, and commits the decision; if another write was faster, the intent decides again. An intent therefore depends
only on the call and on the state that it is shown, and keeps nothing between decisions.
"""

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import msgspec

from drachma.server.admission import proposal
from drachma.server.admission.quotacharge import QuotaCharge
from drachma.server.surface.strategy import Write
from drachma.store import record

Get: TypeAlias = proposal.Get


class Make(msgspec.Struct, frozen=True):
    """Creation of an object under a free key; ``charges`` and ``companions`` are written in the same commit."""

    key: record.Key
    document: dict[str, Any]
    uid: str
    charges: tuple[QuotaCharge, ...] = ()
    companions: tuple[proposal.Companion, ...] = ()


class Replace(msgspec.Struct, frozen=True):
    """New content for an object that has not changed since; ``charges`` and ``companions`` as in :class:`Make`."""

    stored: record.Record
    document: dict[str, Any]
    charges: tuple[QuotaCharge, ...] = ()
    companions: tuple[proposal.Companion, ...] = ()

    @property
    def key(self) -> record.Key:
        return self.stored.key


class Remove(msgspec.Struct, frozen=True):
    """Removal of an object that has not changed since; ``last`` is the content that watchers see.

    ``answer`` is the document for the client if it differs from ``last``: that of an update which removes the last
    finalizer. Then it is no conflict if the object has been removed in the meantime, because several clients may remove
    the last finalizer at once. ``released`` are other objects that are removed in the same commit.
    """

    stored: record.Record
    last: Mapping[str, Any]
    answer: Mapping[str, Any] | None = None
    released: tuple[record.Record, ...] = ()

    @property
    def key(self) -> record.Key:
        return self.stored.key


class Leave(msgspec.Struct, frozen=True):
    """No change."""

    stored: record.Record


Decision: TypeAlias = Make | Replace | Remove | Leave


class Intent(Protocol):
    """A change that a call asks for."""

    @property
    def write(self) -> Write:
        """The object and the user of the change."""

    @property
    def is_dry_run(self) -> bool:
        """True if the change is decided and not committed."""

    def decide(self, get: Get) -> Decision:
        """Decide what to do with the stored object; called again if another write was faster.

        Raises:
            status.StatusError: the change is refused.
        """


class Outcome(msgspec.Struct, frozen=True):
    """Result of a write: the record in the store, or just a ``document`` after a dry run.

    After a removal, ``stored`` is the last version of the object.
    """

    document: Mapping[str, Any]
    stored: record.Record | None
    is_created: bool = False
    is_gone: bool = False
