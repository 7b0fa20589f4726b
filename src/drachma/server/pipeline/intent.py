"""Intents: what a call wants to happen to an object, decided on the object as it is stored.

Creating, changing, deleting, binding and marking a pod are intents. :mod:`drachma.server.pipeline.commit` asks an
intent what is to be done and does it; where another write comes first, it asks again. So an intent decides from
nothing but what it is shown and what the call brought along, and keeps nothing from one time to the next.
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
    """A new object under a key that is free; ``charges`` are booked and ``companions`` written in the same commit."""

    key: record.Key
    document: dict[str, Any]
    uid: str
    charges: tuple[QuotaCharge, ...] = ()
    companions: tuple[proposal.Companion, ...] = ()


class Replace(msgspec.Struct, frozen=True):
    """Another content for an object that is still as it is here; ``charges`` and ``companions`` are as with others."""

    stored: record.Record
    document: dict[str, Any]
    charges: tuple[QuotaCharge, ...] = ()
    companions: tuple[proposal.Companion, ...] = ()

    @property
    def key(self) -> record.Key:
        return self.stored.key


class Remove(msgspec.Struct, frozen=True):
    """No object any more, if it is still as it is here; ``last`` is the content that watchers see it go with.

    ``answer`` is what the client is shown where that is something else: an update that takes the last finalizer. It is
    also fine if the object has gone by itself in the meantime, because several clients may take it at once.
    ``released`` are other objects that go in the same commit.
    """

    stored: record.Record
    last: Mapping[str, Any]
    answer: Mapping[str, Any] | None = None
    released: tuple[record.Record, ...] = ()

    @property
    def key(self) -> record.Key:
        return self.stored.key


class Leave(msgspec.Struct, frozen=True):
    """Nothing is to be done: the object is as it should be."""

    stored: record.Record


Decision: TypeAlias = Make | Replace | Remove | Leave


class Intent(Protocol):
    """What a call wants to happen to one object."""

    @property
    def write(self) -> Write:
        """Which object, and who wants it."""

    @property
    def is_dry_run(self) -> bool:
        """Whether it is only to be decided and not to be done."""

    def decide(self, get: Get) -> Decision:
        """What is to be done; called again after another write came first.

        Raises:
            status.StatusError: it may not be done.
        """


class Outcome(msgspec.Struct, frozen=True):
    """What a write left: ``stored`` in the store, or after a dry run or the end of the object, just a ``document``.

    Where a deletion removes the object, ``stored`` is the version that it went with.
    """

    document: Mapping[str, Any]
    stored: record.Record | None
    is_created: bool = False
    is_gone: bool = False
