"""Preemption: which workloads have to give up their quota so that another one fits, and why just those.

What is asked is a :class:`Need`; the answer is a list of :class:`Target`, empty where nobody can be made to. There are
two ways to answer: classical (:mod:`classicalpreemption`) and by fair shares
(:mod:`fairpreemption`). Both take workloads away until the need fits, and give back, in reverse, those
that turn out not to matter. The snapshot is the same afterwards.
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
"""Not preempted: a larger workload of the same elastic job takes its place."""

_EXPLANATIONS: Final = {
    IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    IN_COHORT_RECLAMATION: "reclamation within the cohort",
    IN_COHORT_FAIR_SHARING: "Fair Sharing within the cohort",
    IN_COHORT_RECLAIM_WHILE_BORROWING: "reclamation within the cohort while borrowing",
}

_BEFORE_USAGE: Final = 2
"""How many parts of a rank come before past usage: who is evicted, and of which queue."""


class Target(msgspec.Struct, frozen=True):
    """A workload that has to give up its quota."""

    info: WorkloadInfo
    reason: str
    queue: QueueState


class Need(msgspec.Struct, frozen=True):
    """What a workload would use, and of what others have to give up some."""

    info: WorkloadInfo
    queue: QueueState
    usage: Usage
    keys: frozenset[FlavorResource]
    now: datetime

    def rank(self, candidate: WorkloadInfo) -> tuple[Any, ...]:
        """Candidates are taken in this order: evicted ones, of other queues, less urgent, admitted most recently."""
        return (
            not candidate.is_evicted,
            candidate.cluster_queue == self.queue.name,
            candidate.priority,
            -candidate.reserved_at(self.now).timestamp(),
            candidate.workload.metadata.uid,
            candidate.key,
        )

    def may_preempt(self, candidate: WorkloadInfo, policy: str) -> bool:
        """Whether a policy lets the workload displace another."""
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
        """Whether it fits into what is free now."""
        node = self.queue.node
        return all(
            (may_borrow or not node.is_borrowing(key, amount)) and amount <= max(0, node.available(key))
            for key, amount in self.usage.items()
        )


def order(need: Need, snapshot: Snapshot) -> Callable[[WorkloadInfo], Any]:
    """By what candidates are sorted: their rank, and where past usage matters, that before their priority.

    Past usage is compared within a queue, between local queues of different names. So there may be no order that is
    right for every pair, as in Kueue; candidates of the same queue are in theirs.
    """
    if snapshot.ledger is None:
        return need.rank
    return functools.cmp_to_key(functools.partial(_compare, need, snapshot))


def _compare(need: Need, snapshot: Snapshot, first: WorkloadInfo, second: WorkloadInfo) -> int:
    one, other = need.rank(first), need.rank(second)
    if one[:_BEFORE_USAGE] == other[:_BEFORE_USAGE] and _are_compared_by_usage(first, second):
        used, other_used = snapshot.past_usage(first), snapshot.past_usage(second)
        if used is not None and other_used is not None and used != other_used:
            return -1 if used > other_used else 1
    return (one > other) - (one < other)


def _are_compared_by_usage(first: WorkloadInfo, second: WorkloadInfo) -> bool:
    return (
        first.cluster_queue == second.cluster_queue
        and first.workload.spec.queue_name != second.workload.spec.queue_name
    )


def give_back(targets: list[Target], snapshot: Snapshot, fits: Callable[[], bool]) -> list[Target]:
    """Those of some targets, all taken away, that matter: the others are given back, the last taken first."""
    position = len(targets) - 2
    while position >= 0:
        target = targets[position]
        snapshot.add(target.info)
        if fits():
            targets[position] = targets[-1]
            targets.pop()
        else:
            snapshot.remove(target.info)
        position -= 1
    return targets


def restore(targets: list[Target], snapshot: Snapshot) -> None:
    """Give everything back."""
    for target in targets:
        snapshot.add(target.info)


def message(preemptor: WorkloadInfo, target: Target, *, path: str) -> str:
    """What the conditions of a victim say."""
    metadata = preemptor.workload.metadata
    return (
        f"Preempted to accommodate a workload (UID: {metadata.uid or 'UNKNOWN'}, "
        f"JobUID: {metadata.labels.get(workload.JOB_UID_LABEL) or 'UNKNOWN'}) due to "
        f"{_EXPLANATIONS.get(target.reason, 'UNKNOWN')}; "
        f"preemptor path: {path}; preemptee path: {target.queue.path}"
    )


def priorities(preemptor: WorkloadInfo, target: WorkloadInfo) -> str:
    """What events add to that."""
    return f"preemptor {_priority(preemptor)}; preemptee {_priority(target)}"


def _priority(of: WorkloadInfo) -> str:
    base = of.workload.spec.priority or 0
    return f"effective priority: {of.priority} (base: {base}, boost: {of.priority - base})"
