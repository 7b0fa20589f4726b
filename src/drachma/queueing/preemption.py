"""Preemption: which workloads have to give up their quota so that another one fits, and why just those.

What is asked is a :class:`Need`; the answer is a list of :class:`Target`, empty where nobody can be made to. There are
two ways to answer: classical (:mod:`drachma.queueing.classicalpreemption`) and by fair shares
(:mod:`drachma.queueing.fairpreemption`). Both take workloads away until the need fits, and give back, in reverse, those
that turn out not to matter. The snapshot is the same afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from drachma.queueing.kinds import clusterqueue, workload
from drachma.queueing.requests import FlavorResource, Usage
from drachma.queueing.snapshot import QueueState, Snapshot
from drachma.queueing.workloadinfo import WorkloadInfo

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

    def rank(self, candidate: WorkloadInfo) -> tuple[object, ...]:
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
