"""The state that decisions are made on, entry by entry, and which entries became different since it was last asked.

An entry is replaced by the next of its key: what changes often between two decisions is written once. Entries of two
sorts are never equal, whatever their keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from drachma.accounting import ledger
from drachma.api import codec, meta, pod, resourceclaim, scheme
from drachma.scheduler.recording import essentials, recordlines


class ObjectEntry(msgspec.Struct, frozen=True):
    """An object of the API."""

    kind: type[meta.Object]
    namespace: str
    name: str

    def line(self, value: meta.Object | None) -> recordlines.Line:
        """How it is recorded."""
        if value is not None:
            return recordlines.Object(object=raw(value))
        kind = scheme.of(self.kind)
        return recordlines.Gone(
            api_version=kind.api_versions[0], kind=kind.name, name=self.name, namespace=self.namespace
        )


class AssumedEntry(msgspec.Struct, frozen=True):
    """A pod on its way to a node, by uid."""

    uid: str

    def line(self, value: tuple[str, ledger.Booking] | None) -> recordlines.Line:
        """How it is recorded."""
        if value is None:
            return recordlines.Assumed(uid=self.uid)
        node, booking = value
        return recordlines.Assumed(uid=self.uid, pod=raw(booking.pod), node=node, demand=booking.demand)


class InFlightEntry(msgspec.Struct, frozen=True):
    """An allocation on its way to a claim, by the claim's uid."""

    uid: str

    def line(self, value: tuple[meta.ObjectMeta, resourceclaim.AllocationResult] | None) -> recordlines.Line:
        """How it is recorded."""
        owner, allocation = value or (None, None)
        return recordlines.InFlight(uid=self.uid, owner=owner, allocation=allocation)


class PromisedEntry(msgspec.Struct, frozen=True):
    """A volume that is kept for a claim."""

    volume: str

    def line(self, value: str | None) -> recordlines.Line:
        """How it is recorded."""
        return recordlines.Promised(volume=self.volume, claim=value or "")


class NominatedEntry(msgspec.Struct, frozen=True):
    """A pod that a node is kept for, by uid."""

    uid: str

    def line(self, value: tuple[pod.Pod, str] | None) -> recordlines.Line:
        """How it is recorded."""
        if value is None:
            return recordlines.Nominated(uid=self.uid)
        return recordlines.Nominated(uid=self.uid, pod=raw(value[0]), node=value[1])


Entry = ObjectEntry | AssumedEntry | InFlightEntry | PromisedEntry | NominatedEntry
Changes = list[tuple[Entry, object]]
"""Entries with their values; None where there is none any more."""


class RecordState:
    """All entries. Values are immutable: they are shared with whoever else has them, and with those who write."""

    def __init__(self) -> None:
        self._values: Final[dict[Entry, object]] = {}
        self._changed: Final[dict[Entry, None]] = {}

    def get(self, entry: Entry) -> object:
        """The value of an entry, None where there is none."""
        return self._values.get(entry)

    def put(self, entry: Entry, value: object) -> None:
        """Note the value of an entry; None for no value."""
        if value is not None:
            self._values[entry] = value
        elif self._values.pop(entry, None) is None:
            return
        self._changed[entry] = None

    def changes(self) -> Changes:
        """What became different since this, or :meth:`everything`, was last asked."""
        changed = [(entry, self._values.get(entry)) for entry in self._changed]
        self._changed.clear()
        return changed

    def everything(self) -> Changes:
        """All that there is."""
        self._changed.clear()
        return list(self._values.items())


def lines(changes: Changes) -> Iterator[bytes]:
    """Entries as lines, in their order, made while they are read."""
    for entry, value in changes:
        yield recordlines.encode(entry.line(value))  # type: ignore[arg-type]


def raw(stored: meta.Object) -> msgspec.Raw:
    """An object as lines have it."""
    return msgspec.Raw(codec.encode_json(essentials.of(stored)))
