"""Entries of an admission cycle: a head of a queue, the decision about it, and its workload afterwards."""

from __future__ import annotations

import enum
from datetime import datetime

import msgspec
from msgspec import structs

from drachma.queueing.admission.flavorassignment import Assignment, Reason
from drachma.queueing.admission.pendingqueue import RequeueReason
from drachma.queueing.admission.preemption import SLICE_REPLACED, Target
from drachma.queueing.admission.snapshot import QueueState
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import admissibility, transitions, workloadstate
from drachma.queueing.workloads.placedpods import PlacedPods
from drachma.queueing.workloads.requests import Usage
from drachma.queueing.workloads.settings import Settings
from drachma.queueing.workloads.workloadevents import NORMAL, Event
from drachma.queueing.workloads.workloadinfo import Attempt, WorkloadInfo


class Status(enum.StrEnum):
    """Decision about an entry."""

    WAITING = "waiting"
    SKIPPED = "skipped"
    GATED = "gated"
    ADMITTED = "admitted"
    EVICTED = "evicted"
    """A failed node of the workload cannot be replaced."""


class Head(msgspec.Struct, frozen=True):
    """A workload at the head of its queue."""

    info: WorkloadInfo
    is_preemptor: bool = False
    """True if other workloads are being preempted for this one already."""
    passes: int = 0
    """Number of second passes, for a workload that holds quota and has no places yet."""


class Entry:
    """A head and the decision about it in this cycle."""

    __slots__ = (
        "admission", "assignment", "attempt", "head", "info", "message", "places", "quota_reason", "requeue_reason",
        "status", "targets",
    )  # fmt: skip

    def __init__(self, head: Head) -> None:
        self.head = head
        self.info = head.info
        self.assignment = Assignment(())
        self.targets: list[Target] = []
        """Workloads that have to give up their quota, including the one that this workload replaces."""
        self.status = Status.WAITING
        self.message = ""
        self.quota_reason = ""
        self.requeue_reason = RequeueReason.GENERIC
        self.attempt: Attempt | None = head.info.attempt
        """Progress of the flavor search, for the next cycle."""
        self.admission: workload.Admission | None = None
        self.places: tuple[PlacedPods, ...] = ()
        """Domains of topologies that it takes, beyond those that it holds already."""

    def __repr__(self) -> str:
        return f"Entry({self.info.key!r}, {self.status})"

    @property
    def usage(self) -> Usage:
        """Usage beyond the quota that is reserved for the workload already."""
        return {} if self.info.has_reservation else self.assignment.usage

    @property
    def is_preemptor(self) -> bool:
        return self.head.is_preemptor

    @property
    def replaced(self) -> Target | None:
        """Workload of the same elastic job that this one replaces."""
        return next((each for each in self.targets if each.reason == SLICE_REPLACED), None)

    @property
    def victims(self) -> list[Target]:
        """Workloads that are preempted for this one."""
        return [each for each in self.targets if each.reason != SLICE_REPLACED]

    @property
    def borrowing(self) -> int:
        """Height in the tree of cohorts from which its quota would come."""
        return self.assignment.borrowing

    def record(self, assignment: Assignment, targets: list[Target], places: tuple[PlacedPods, ...]) -> None:
        self.assignment = assignment
        self.targets = targets
        self.places = places
        self.message = assignment.message
        self.attempt = assignment.attempt


def admitted_workload(entry: Entry, queue: QueueState, *, settings: Settings, now: datetime) -> workload.Workload:
    """Return the workload of an admitted entry: quota is reserved, and it is admitted if no checks are missing."""
    assert entry.admission is not None
    after = transitions.reserve(entry.info.workload, entry.admission, now)
    if after.status.unhealthy_nodes:
        after = workloadstate.with_status(after, unhealthy_nodes=workload.WorkloadStatus().unhealthy_nodes)
    if admissibility.has_all_checks(after, queue.spec):
        after = transitions.sync_admitted(after, now, gates=settings.gates)
    return after


def pending_reason(entry: Entry, settings: Settings) -> str:
    """Return the reason why an entry is not admitted."""
    if not settings.gates.on(Gate.UNADMITTED_OBSERVABILITY):
        return "Pending"
    # Differs from Kueue, whose reason is empty if no group of the queue has a resource; API servers refuse that.
    return entry.quota_reason or Reason.NO_MATCHING_FLAVOR.value


def pending_workload(entry: Entry, *, settings: Settings, now: datetime) -> workload.Workload:
    """Return the workload of an entry that is not admitted, with the reason and the requests that were considered."""
    before = entry.info.workload
    reason = pending_reason(entry, settings)
    after = transitions.unreserve(before, reason=reason, message=entry.message, now=now, gates=settings.gates)
    lists = workloadstate.request_lists(entry.info.pod_sets, binary=settings.binary)
    if lists != after.status.resource_requests:
        after = structs.replace(after, status=structs.replace(after.status, resource_requests=lists))
    if entry.status is not Status.GATED:
        return after
    gated = transitions.condition(
        after, "BlockedOnPreemptionGates", "True", reason="PreemptionGated", message=entry.message, now=now
    )
    # Kueue writes nothing if this condition exists already.
    return before if gated is after else gated


def evicted_workload(entry: Entry, now: datetime) -> workload.Workload:
    """Return the workload of an entry whose failed node cannot be replaced."""
    return transitions.evict(entry.info.workload, reason=transitions.NODE_FAILURES, message=entry.message, now=now)


def replaced_slice(entry: Entry, target: Target, now: datetime) -> tuple[workload.Workload, Event]:
    """Return the finished slice that the larger slice of an admitted entry replaces, and the event about it."""
    metadata = entry.info.workload.metadata
    message = (
        f"Replaced to accommodate a workload (UID: {metadata.uid}, "
        f"JobUID: {metadata.labels.get(workload.JOB_UID_LABEL, '')}) due to workload slice aggregation"
    )
    after = transitions.finished(target.info.workload, reason=target.reason, message=message, now=now)
    return after, Event(target.info.key, NORMAL, target.reason, message)
