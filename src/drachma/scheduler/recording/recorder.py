"""The recorder: hears of everything that decisions depend on, and of every decision.

It is told by the same informers as the scheduler, and by the scheduler's snapshot of what is not in the API yet: pods
and allocations on their way, nominations. Everything is noted at once and written in the background; a decision costs
the scheduler no more than that its inputs are listed. Where writing does not keep up, decisions are left out, and the
recording goes on with a new beginning that says how many.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import structs

from drachma.accounting import ledger
from drachma.api import meta, pod, resourceclaim
from drachma.runtime import cache, clock, informer
from drachma.scheduler import deliberation, gangsearch
from drachma.scheduler.decision import Aborted, Decision, Placed, Unfit
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
"""That may wait to be written."""


class Recorder:
    """Records the decisions of one scheduler."""

    def __init__(self, file: recordfile.RecordFile, *, chosen: Settings, time: clock.Clock) -> None:
        self._file: Final = file
        self._settings: Final = chosen
        self._clock: Final = time
        self._state: Final = recordstate.RecordState()
        self._snapshot: Snapshot | None = None
        self._nominated: frozenset[str] = frozenset()
        self._number = 0
        self._missed = 0

    def attach(self, shared: deliberation.Sources, snapshot: Snapshot) -> None:
        """Listen from now on; after the scheduler's own handlers, so that both know the same at any decision."""
        self._snapshot = snapshot
        snapshot.listener = self
        snapshot.claims.listener = self._claim_changed
        for row in kinds.followed(self._settings.gates):
            if row.kind is resourceclaim.ResourceClaim:
                # The snapshot reports claims: it knows those first that were just written.
                continue
            source: deliberation.Source[Any] = shared.of(row.kind)
            if row.kind is pod.Pod:
                source.add_handler(
                    informer.Handler(
                        added=self._put_pod, updated=lambda _, new: self._put_pod(new), deleted=self._remove_pod
                    )
                )
            else:
                source.add_handler(
                    informer.Handler(added=self._put, updated=lambda _, new: self._put(new), deleted=self._remove)
                )

    def open(self) -> contextlib.AbstractContextManager[None]:
        """Records decisions until its end; InvalidValueError where the file cannot be written."""
        return self._file.open()

    # What informers tell

    def _put(self, new: meta.Object) -> None:
        self._state.put(_entry(new), new)

    def _remove(self, gone: meta.Object) -> None:
        self._state.put(_entry(gone), None)

    def _put_pod(self, new: pod.Pod) -> None:
        """Only pods on nodes count; one that is there is no longer on its way."""
        if new.spec.node_name:
            self._put(new)
            self._state.put(AssumedEntry(new.metadata.uid), None)

    def _remove_pod(self, gone: pod.Pod) -> None:
        self._remove(gone)
        if gone.spec.node_name:
            self._state.put(AssumedEntry(gone.metadata.uid), None)

    # What the snapshot tells

    def bound(self, assigned: assignment.Assignment) -> None:
        """A pod is on its way to a node; its allocations are told one by one."""
        booking = ledger.Booking(assigned.pod, assigned.demand)
        self._state.put(AssumedEntry(assigned.pod.metadata.uid), (assigned.node, booking))
        for volume, claim in assigned.volumes:
            self._state.put(PromisedEntry(volume), claim)

    def unbound(self, assigned: assignment.Assignment) -> None:
        """That is given up."""
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

    def decided(self, decision: Decision) -> None:
        """A decision was made, and nothing of it is done yet."""
        self._record(lambda number, time: _decision_line(decision, number=number, time=time))

    def decided_together(self, infos: Sequence[podinfo.PodInfo], decision: gangsearch.Outcome, *, needed: int) -> None:
        """The same about a gang."""
        self._record(lambda number, time: _together_line(infos, decision, needed=needed, number=number, time=time))

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
        """Made by whoever writes them: all that they are made of never changes."""
        if beginning is not None:
            yield recordlines.encode(beginning)
        yield from recordstate.lines(changes)
        yield recordlines.encode(line(number, time))


def _entry(of: meta.Object) -> ObjectEntry:
    return ObjectEntry(type(of), str(of.metadata.namespace), str(of.metadata.name))


def _decision_line(decision: Decision, *, number: int, time: datetime) -> recordlines.Decision:
    waiting = recordstate.raw(decision.info.pod)
    match decision:
        case Placed():
            return recordlines.Decision(
                number=number,
                time=time,
                pod=waiting,
                node=decision.node,
                allocations=_allocations(decision),
                feasible=decision.feasible,
            )
        case Unfit():
            return recordlines.Decision(number=number, time=time, pod=waiting, reasons=decision.diagnosis.message())
        case Aborted():
            return recordlines.Decision(number=number, time=time, pod=waiting, error=decision.message)


def _together_line(
    infos: Sequence[podinfo.PodInfo], decision: gangsearch.Outcome, *, needed: int, number: int, time: datetime
) -> recordlines.Together:
    line = recordlines.Together(
        number=number, time=time, needed=needed, pods=tuple(recordstate.raw(info.pod) for info in infos)
    )
    match decision:
        case gangsearch.Together():
            members = tuple(
                recordlines.Member(uid=each.info.uid, node=each.node, allocations=_allocations(each))
                for each in decision.placements
            )
            return structs.replace(line, members=members)
        case gangsearch.Short():
            return structs.replace(line, reasons=decision.unfit.diagnosis.message())
        case Aborted():
            return structs.replace(line, error=decision.message)


def _allocations(placed: Placed) -> tuple[recordlines.ClaimAllocation, ...]:
    return tuple(
        recordlines.ClaimAllocation(str(each.claim.metadata.name), each.result)
        for each in placed.assignment.allocations
    )
