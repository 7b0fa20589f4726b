"""Preemption: the workloads that have to give up their quota so that another one fits.

The input is a :class:`Need`, the result a list of :class:`Target`, which is empty if preemption is not possible. There
are two algorithms: classical (:mod:`classicalpreemption`) and by fair shares (:mod:`fairpreemption`). Both remove
workloads until the need fits, and then add back, in reverse order, the workloads that turn out not to matter. The
snapshot is unchanged afterwards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from drachma.queueing.admission.snapshot import QueueState, Snapshot
from drachma.queueing.kinds import clusterqueue, workload
from drachma.queueing.workloads.requests import FlavorResource, Usage
from drachma.queueing.workloads.workloadinfo import WorkloadInfo

IN_CLUSTER_QUEUE: Final = "InClusterQueue"
IN_COHORT_RECLAMATION: Final = "InCohortReclamation"
IN_COHORT_FAIR_SHARING: Final = "InCohortFairSharing"
IN_COHORT_RECLAIM_WHILE_BORROWING: Final = "InCohortReclaimWhileBorrowing"
SLICE_REPLACED: Final = "WorkloadSliceReplaced"
"""Reason of a slice that is not preempted but replaced by a larger slice of its elastic job."""

_EXPLANATIONS: Final = {
    IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    IN_COHORT_RECLAMATION: "reclamation within the cohort",
    IN_COHORT_FAIR_SHARING: "Fair Sharing within the cohort",
    IN_COHORT_RECLAIM_WHILE_BORROWING: "reclamation within the cohort while borrowing",
}

_BEFORE_USAGE: Final = 2
"""Number of parts of a rank that come before past usage: evicted, and queue."""


class Target(msgspec.Struct, frozen=True):
    """A workload that has to give up its quota."""

    info: WorkloadInfo
    reason: str
    queue: QueueState


class Need(msgspec.Struct, frozen=True):
    """Usage that a workload needs, and the resources of which others have to give up some."""

    info: WorkloadInfo
    queue: QueueState
    usage: Usage
    keys: frozenset[FlavorResource]
    now: datetime
    has_room: Callable[[], bool] = lambda: True
    """Returns True if the pods find places on the topologies of their flavors."""

    def rank(self, candidate: WorkloadInfo) -> tuple[Any, ...]:
        """Return the sort key of a candidate: evicted first, then other queues, lower priority, latest admission."""
        return (
            not candidate.is_evicted,
            candidate.cluster_queue == self.queue.name,
            candidate.priority,
            -candidate.reserved_at(self.now).timestamp(),
            candidate.workload.metadata.uid,
            candidate.key,
        )

    def may_preempt(self, candidate: WorkloadInfo, policy: str) -> bool:
        """Return True if a policy allows the workload to preempt another."""
        match policy:
            case clusterqueue.ANY:
                return True
            case clusterqueue.LOWER_PRIORITY:
                return self.info.priority > candidate.priority
            case clusterqueue.LOWER_OR_NEWER_EQUAL_PRIORITY:
                if self.info.priority == candidate.priority:
                    return self.info.queue_time < candidate.queue_time
                return self.info.priority > candidate.priority
        return False

    def fits(self, *, may_borrow: bool) -> bool:
        """Return True if the need fits into the free quota, and its pods find places."""
        node = self.queue.node
        has_quota = all(
            (may_borrow or not node.is_borrowing(key, amount)) and amount <= max(0, node.available(key))
            for key, amount in self.usage.items()
        )
        return has_quota and self.has_room()


def order(need: Need, snapshot: Snapshot) -> Callable[[WorkloadInfo], Any]:
    """Return the sort key function of candidates: their rank, with past usage before priority if it matters.

    Past usage is compared within a queue, between local queues of different names. As in Kueue, there may be no order
    that is right for every pair; candidates of the same queue are in the right order.
    """
    if snapshot.ledger is None:
        return need.rank
    return functools.cmp_to_key(functools.partial(_compare, need, snapshot))


def _compare(need: Need, snapshot: Snapshot, first: WorkloadInfo, second: WorkloadInfo) -> int:
    first_rank, second_rank = need.rank(first), need.rank(second)
    if first_rank[:_BEFORE_USAGE] == second_rank[:_BEFORE_USAGE] and _are_compared_by_usage(first, second):
        used, other_used = snapshot.past_usage(first), snapshot.past_usage(second)
        if used is not None and other_used is not None and used != other_used:
            return -1 if used > other_used else 1
    return (first_rank > second_rank) - (first_rank < second_rank)


def _are_compared_by_usage(first: WorkloadInfo, second: WorkloadInfo) -> bool:
    return (
        first.cluster_queue == second.cluster_queue
        and first.workload.spec.queue_name != second.workload.spec.queue_name
    )


def give_back(targets: list[Target], snapshot: Snapshot, fits: Callable[[], bool]) -> list[Target]:
    """Return the targets that matter. The others are added back, starting with the last one removed."""
    position = len(targets) - 2
    while position >= 0:
        target = targets[position]
        snapshot.put_back(target.info)
        if fits():
            targets[position] = targets[-1]
            targets.pop()
        else:
            snapshot.withdraw(target.info)
        position -= 1
    return targets


def restore(targets: list[Target], snapshot: Snapshot) -> None:
    """Add all targets back."""
    for target in targets:
        snapshot.put_back(target.info)


def message(preemptor: WorkloadInfo, target: Target, *, path: str) -> str:
    """Return the message of a victim's conditions."""
    metadata = preemptor.workload.metadata
    return (
        f"Preempted to accommodate a workload (UID: {metadata.uid or 'UNKNOWN'}, "
        f"JobUID: {metadata.labels.get(workload.JOB_UID_LABEL) or 'UNKNOWN'}) due to "
        f"{_EXPLANATIONS.get(target.reason, 'UNKNOWN')}; "
        f"preemptor path: {path}; preemptee path: {target.queue.path}"
    )


def priorities(preemptor: WorkloadInfo, target: WorkloadInfo) -> str:
    """Return the priorities that events about a preemption add."""
    return f"preemptor {_priority(preemptor)}; preemptee {_priority(target)}"


def _priority(info: WorkloadInfo) -> str:
    base = info.workload.spec.priority or 0
    return f"effective priority: {info.priority} (base: {base}, boost: {info.priority - base})"
