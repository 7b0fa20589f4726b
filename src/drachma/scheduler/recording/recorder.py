"""The recorder: records every decision, and everything that decisions depend on.

It listens to the same informers as the scheduler, and to the scheduler's snapshot for the state that is not in the API
yet: assumed pods, allocations in flight, nominations. Everything is noted at once and written in the background, so a
decision costs the scheduler only the list of its inputs. If the disk is too slow, decisions are left out, and the
recording continues with a new beginning that says how many.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final

from msgspec import structs

from drachma.accounting import ledger
from drachma.api import meta, pod, resourceclaim
from drachma.runtime import cache, clock, informer
from drachma.scheduler import deliberation
from drachma.scheduler.cycle import gangsearch, units
from drachma.scheduler.cycle.decision import Aborted, Placed
from drachma.scheduler.recording import recordfile, recordlines, recordstate
from drachma.scheduler.recording.recordstate import (
    AssumedEntry,
    InFlightEntry,
    NominatedEntry,
    ObjectEntry,
    PromisedEntry,
)
from drachma.scheduler.settings import Settings
from drachma.scheduler.snapshot import Snapshot, assignment, kinds, podinfo

_MOST_BATCHES: Final = 1000
"""Number of batches that may wait to be written."""


class Recorder:
    """Records the decisions of one scheduler."""

    def __init__(self, file: recordfile.RecordFile, *, settings: Settings, clock: clock.Clock) -> None:
        self._file: Final = file
        self._settings: Final = settings
        self._clock: Final = clock
        self._state: Final = recordstate.RecordState()
        self._snapshot: Snapshot | None = None
        self._nominated: frozenset[str] = frozenset()
        self._number = 0
        self._missed = 0

    def attach(self, sources: deliberation.Sources, snapshot: Snapshot) -> None:
        """Listen from now on, after the scheduler's own handlers, so that both know the same at any decision."""
        self._snapshot = snapshot
        snapshot.listener = self
        snapshot.claims.listener = self._claim_changed
        for row in kinds.served_rows(self._settings.gates):
            if row.kind is resourceclaim.ResourceClaim:
                # The snapshot reports claims, since it knows recent writes first.
                continue
            source: deliberation.Source[Any] = sources.of(row.kind)
            if row.kind is pod.Pod:
                source.add_handler(informer.Handler.on_write(self._put_pod, deleted=self._remove_pod))
            else:
                source.add_handler(informer.Handler.on_write(self._put, deleted=self._remove))

    def open(self) -> contextlib.AbstractContextManager[None]:
        """Record decisions until the end of the context. Raises InvalidValueError if the file cannot be written."""
        return self._file.open()

    # Reports of informers

    def _put(self, new: meta.Object) -> None:
        self._state.put(_entry(new), new)

    def _remove(self, deleted: meta.Object) -> None:
        self._state.put(_entry(deleted), None)

    def _put_pod(self, new: pod.Pod) -> None:
        """Record a pod on a node. It is no longer assumed."""
        if new.spec.node_name:
            self._put(new)
            self._state.put(AssumedEntry(new.metadata.uid), None)

    def _remove_pod(self, deleted: pod.Pod) -> None:
        self._remove(deleted)
        if deleted.spec.node_name:
            self._state.put(AssumedEntry(deleted.metadata.uid), None)

    # Reports of the snapshot

    def bound(self, assigned: assignment.Assignment) -> None:
        """Record a pod that is assumed on a node. Its allocations are reported one by one."""
        booking = ledger.Booking(assigned.pod, assigned.demand)
        self._state.put(AssumedEntry(assigned.pod.metadata.uid), (assigned.node, booking))
        for volume, claim in assigned.volumes:
            self._state.put(PromisedEntry(volume), claim)

    def unbound(self, assigned: assignment.Assignment) -> None:
        """Record that a pod is no longer assumed."""
        self._state.put(AssumedEntry(assigned.pod.metadata.uid), None)
        for volume, _ in assigned.volumes:
            self._state.put(PromisedEntry(volume), None)

    def _claim_changed(self, key: cache.Key, owner: meta.ObjectMeta) -> None:
        assert self._snapshot is not None, "is attached"
        claims = self._snapshot.claims
        claim = claims.get(key.namespace, key.name)
        self._state.put(ObjectEntry(resourceclaim.ResourceClaim, str(key.namespace), str(key.name)), claim)
        allocation = claims.pending(owner.uid)
        self._state.put(InFlightEntry(owner.uid), None if allocation is None else (owner, allocation))

    def _note_nominations(self, snapshot: Snapshot) -> None:
        nominations = {info.uid: (info.pod, node) for info, node in snapshot.nominations}
        for uid, value in nominations.items():
            if self._state.get(NominatedEntry(uid)) != value:
                self._state.put(NominatedEntry(uid), value)
        for uid in self._nominated - nominations.keys():
            self._state.put(NominatedEntry(uid), None)
        self._nominated = frozenset(nominations)

    # Decisions

    def decided(self, unit: units.Unit, outcome: gangsearch.Outcome) -> None:
        """Record a decision that was made and not carried out yet."""
        self._record(lambda number, time: _line(unit, outcome, number=number, time=time))

    def _record(self, line: Callable[[int, datetime], recordlines.Line]) -> None:
        assert self._snapshot is not None, "is attached"
        self._number += 1
        if self._file.has_ended:
            return
        backlog = self._file.backlog
        if backlog > _MOST_BATCHES or (self._missed and backlog):
            self._missed += 1
            return
        self._note_nominations(self._snapshot)
        is_beginning = self._file.wants_beginning or bool(self._missed)
        lines = self._lines(
            line,
            recordlines.Beginning(version=recordlines.VERSION, settings=self._settings, missed=self._missed)
            if is_beginning
            else None,
            self._state.everything() if is_beginning else self._state.changes(),
            number=self._number,
            time=self._clock.utc(),
        )
        self._missed = 0
        self._file.write(lines, is_beginning=is_beginning)

    @staticmethod
    def _lines(
        line: Callable[[int, datetime], recordlines.Line],
        beginning: recordlines.Beginning | None,
        changes: recordstate.Changes,
        *,
        number: int,
        time: datetime,
    ) -> Iterator[bytes]:
        """Yield the lines, in the thread that writes them. Everything in them is immutable."""
        if beginning is not None:
            yield recordlines.encode(beginning)
        yield from recordstate.lines(changes)
        yield recordlines.encode(line(number, time))


def _entry(recorded: meta.Object) -> ObjectEntry:
    return ObjectEntry(type(recorded), str(recorded.metadata.namespace), str(recorded.metadata.name))


def _line(
    unit: units.Unit, outcome: gangsearch.Outcome, *, number: int, time: datetime
) -> recordlines.Decision | recordlines.Together:
    if unit.gang is None:
        return _pod_line(unit.members[0], outcome, number=number, time=time)
    return _gang_line(unit, outcome, number=number, time=time)


def _pod_line(
    info: podinfo.PodInfo, outcome: gangsearch.Outcome, *, number: int, time: datetime
) -> recordlines.Decision:
    line = recordlines.Decision(number=number, time=time, pod=recordstate.raw(info.pod))
    match outcome:
        case gangsearch.Together():
            placed = outcome.placements[0]
            return structs.replace(line, node=placed.node, allocations=_allocations(placed), feasible=placed.feasible)
        case gangsearch.Short():
            return structs.replace(line, reasons=_reasons(outcome))
        case Aborted():
            return structs.replace(line, error=outcome.message)


def _gang_line(unit: units.Unit, outcome: gangsearch.Outcome, *, number: int, time: datetime) -> recordlines.Together:
    line = recordlines.Together(
        number=number, time=time, needed=unit.needed, pods=tuple(recordstate.raw(info.pod) for info in unit.members)
    )
    match outcome:
        case gangsearch.Together():
            members = tuple(
                recordlines.Member(uid=each.info.uid, node=each.node, allocations=_allocations(each))
                for each in outcome.placements
            )
            return structs.replace(line, members=members)
        case gangsearch.Short():
            return structs.replace(line, reasons=_reasons(outcome))
        case Aborted():
            return structs.replace(line, error=outcome.message)


def _reasons(short: gangsearch.Short) -> str:
    return "" if short.unfit is None else short.unfit.diagnosis.message()


def _allocations(placed: Placed) -> tuple[recordlines.ClaimAllocation, ...]:
    return tuple(
        recordlines.ClaimAllocation(str(each.claim.metadata.name), each.result)
        for each in placed.assignment.allocations
    )
