"""State that decisions depend on, as entries, with the entries that changed since the last recording.

A new value replaces the old value of an entry, so an entry that changes often between two decisions is written once.
Entries of different sorts are never equal, whatever their keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from drachma.accounting import ledger
from drachma.api import codec, meta, pod, resourceclaim, scheme
from drachma.scheduler.recording import essentials, recordlines


class ObjectEntry(msgspec.Struct, frozen=True):
    """Object of the API."""

    kind: type[meta.Object]
    namespace: str
    name: str

    def line(self, value: meta.Object | None) -> recordlines.Line:
        """Return the line for a value."""
        if value is not None:
            return recordlines.Object(object=raw(value))
        kind = scheme.of(self.kind)
        return recordlines.Gone(
            api_version=kind.api_versions[0], kind=kind.name, name=self.name, namespace=self.namespace
        )


class AssumedEntry(msgspec.Struct, frozen=True):
    """Pod that is assumed on a node, by uid."""

    uid: str

    def line(self, value: tuple[str, ledger.Booking] | None) -> recordlines.Line:
        """Return the line for a value."""
        if value is None:
            return recordlines.Assumed(uid=self.uid)
        node, booking = value
        return recordlines.Assumed(uid=self.uid, pod=raw(booking.pod), node=node, demand=booking.demand)


class InFlightEntry(msgspec.Struct, frozen=True):
    """Allocation in flight, by the claim's uid."""

    uid: str

    def line(self, value: tuple[meta.ObjectMeta, resourceclaim.AllocationResult] | None) -> recordlines.Line:
        """Return the line for a value."""
        owner, allocation = value or (None, None)
        return recordlines.InFlight(uid=self.uid, owner=owner, allocation=allocation)


class PromisedEntry(msgspec.Struct, frozen=True):
    """Volume that is promised to a claim."""

    volume: str

    def line(self, value: str | None) -> recordlines.Line:
        """Return the line for a value."""
        return recordlines.Promised(volume=self.volume, claim=value or "")


class NominatedEntry(msgspec.Struct, frozen=True):
    """Pod with a nominated node, by uid."""

    uid: str

    def line(self, value: tuple[pod.Pod, str] | None) -> recordlines.Line:
        """Return the line for a value."""
        if value is None:
            return recordlines.Nominated(uid=self.uid)
        return recordlines.Nominated(uid=self.uid, pod=raw(value[0]), node=value[1])


Entry = ObjectEntry | AssumedEntry | InFlightEntry | PromisedEntry | NominatedEntry
Changes = list[tuple[Entry, object]]
"""Entries with their values; None for an entry that ended."""


class RecordState:
    """All entries. Values are immutable: other components and the writing thread share them."""

    def __init__(self) -> None:
        self._values: Final[dict[Entry, object]] = {}
        self._changed: Final[dict[Entry, None]] = {}

    def get(self, entry: Entry) -> object:
        """Return the value of an entry, or None."""
        return self._values.get(entry)

    def put(self, entry: Entry, value: object) -> None:
        """Set the value of an entry; None ends it."""
        if value is not None:
            self._values[entry] = value
        elif self._values.pop(entry, None) is None:
            return
        self._changed[entry] = None

    def changes(self) -> Changes:
        """Return the entries that changed since the last call of this or :meth:`everything`."""
        changed = [(entry, self._values.get(entry)) for entry in self._changed]
        self._changed.clear()
        return changed

    def everything(self) -> Changes:
        """Return all entries."""
        self._changed.clear()
        return list(self._values.items())


def lines(changes: Changes) -> Iterator[bytes]:
    """Yield the lines of entries, in their order, encoded one by one."""
    for entry, value in changes:
        yield recordlines.encode(entry.line(value))  # type: ignore[arg-type]


def raw(recorded: meta.Object) -> msgspec.Raw:
    """Return an object in the form of lines."""
    return msgspec.Raw(codec.encode_json(essentials.of(recorded)))
