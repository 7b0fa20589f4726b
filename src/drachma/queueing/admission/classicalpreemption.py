"""Classical preemption: by priority and by position in the tree of cohorts.

There are three kinds of candidates. A workload has a hierarchical advantage over candidates that use quota of a subtree
that contains its queue and not theirs. Over other candidates of the tree, priority decides, and whether the queue may
borrow while it preempts. Candidates of its own queue come last. If some candidates may be preempted only without
borrowing, two attempts are made: with borrowing and without.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from drachma.queueing.admission import preemption
from drachma.queueing.admission.preemption import Need, Target
from drachma.queueing.admission.quotatree import Node
from drachma.queueing.admission.snapshot import QueueState, Snapshot
from drachma.queueing.kinds import clusterqueue
from drachma.queueing.workloads.workloadinfo import WorkloadInfo


class _Variant(enum.StrEnum):
    """Way in which a candidate may be preempted; its value is the reason."""

    WITHIN_QUEUE = preemption.IN_CLUSTER_QUEUE
    HIERARCHICAL = preemption.IN_COHORT_RECLAMATION
    WITHOUT_BORROWING = preemption.IN_COHORT_RECLAMATION + " without borrowing"
    WHILE_BORROWING = preemption.IN_COHORT_RECLAIM_WHILE_BORROWING

    @property
    def reason(self) -> str:
        return preemption.IN_COHORT_RECLAMATION if self is _Variant.WITHOUT_BORROWING else str(self)


class _Candidate(msgspec.Struct, frozen=True):
    info: WorkloadInfo
    variant: _Variant
    top: Node | None = None
    """Lowest common cohort of the candidate's queue and the workload's queue."""


def targets(need: Need, snapshot: Snapshot) -> list[Target]:
    """Return the workloads to preempt, or none if preemption does not help."""
    own = _own(need)
    hierarchical, by_priority = _cohort_candidates(need, snapshot)
    candidates = _ordered(preemption.order(need, snapshot), hierarchical, by_priority, own)
    for may_borrow in _attempts(
        need, has_others=bool(hierarchical or by_priority), has_hierarchical=bool(hierarchical)
    ):
        removed: list[Target] = []

        def fits(may_borrow: bool = may_borrow) -> bool:  # noqa: FBT001 -- bound here, never passed
            return need.fits(may_borrow=may_borrow)

        for candidate in candidates:
            if not _is_valid(need, candidate, snapshot, may_borrow=may_borrow):
                continue
            snapshot.withdraw(candidate.info)
            queue = snapshot.queues[candidate.info.cluster_queue]
            removed.append(Target(candidate.info, candidate.variant.reason, queue))
            if fits():
                targets = preemption.give_back(removed, snapshot, fits)
                preemption.restore(targets, snapshot)
                return targets
        preemption.restore(removed, snapshot)
    return []


def _attempts(need: Need, *, has_others: bool, has_hierarchical: bool) -> tuple[bool, ...]:
    """Return for each attempt whether borrowing is allowed."""
    is_forbidden = _is_borrowing_forbidden(need.queue)
    if not has_others or (is_forbidden and not _is_below_nominal(need)):
        return (True,)
    if is_forbidden and not has_hierarchical:
        return (False, True)
    return (True, False)


def _is_borrowing_forbidden(queue: QueueState) -> bool:
    borrowing = queue.preemption.borrow_within_cohort
    return borrowing is None or borrowing.policy == clusterqueue.NEVER


def _is_below_nominal(need: Need) -> bool:
    node = need.queue.node
    return all(node.quota(key).nominal > node.usage.get(key, 0) for key in need.keys)


def _ordered(order: Callable[[WorkloadInfo], Any], *sorts: list[_Candidate]) -> list[_Candidate]:
    """Return candidates of all kinds in order, evicted ones first."""
    ranked = [sorted(sort, key=lambda each: order(each.info)) for sort in sorts]
    evicted = [each for sort in ranked for each in sort if each.info.is_evicted]
    return evicted + [each for sort in ranked for each in sort if not each.info.is_evicted]


def _own(need: Need) -> list[_Candidate]:
    policy = need.queue.preemption.within_cluster_queue
    if policy == clusterqueue.NEVER:
        return []
    return [
        _Candidate(info, _Variant.WITHIN_QUEUE)
        for info in need.queue.workloads.values()
        if need.may_preempt(info, policy) and info.uses(need.keys)
    ]


def _cohort_candidates(need: Need, snapshot: Snapshot) -> tuple[list[_Candidate], list[_Candidate]]:
    """Return candidates of other queues: those under hierarchical advantage, and those by priority."""
    hierarchical: list[_Candidate] = []
    by_priority: list[_Candidate] = []
    if need.queue.preemption.reclaim_within_cohort == clusterqueue.NEVER:
        return hierarchical, by_priority
    has_advantage, overflow = need.queue.node.overflow(need.usage)
    below: Node | None = None
    for top in need.queue.node.ancestors:
        candidates = (
            _Candidate(info, variant, top)
            for queue in _exceeding(top, below, need)
            for info in snapshot.queues[queue.name].workloads.values()
            if (variant := _classify(need, info, has_advantage=has_advantage)) is not None
        )
        (hierarchical if has_advantage else by_priority).extend(candidates)
        fits, overflow = top.overflow(overflow)
        # Queues in a subtree that the need fits into have an advantage over all others.
        has_advantage = has_advantage or fits
        below = top
    return hierarchical, by_priority


def _exceeding(cohort: Node, skip: Node | None, need: Need) -> Iterator[Node]:
    """Yield queues below a cohort that exceed their quota, in cohorts that exceed theirs, without the part visited
    already.
    """
    for child in cohort.cohorts:
        if child is not skip and not child.is_within_quota(need.keys):
            yield from _exceeding(child, skip, need)
    for queue in cohort.queues:
        if queue is not need.queue.node and not queue.is_within_quota(need.keys):
            yield queue


def _classify(need: Need, info: WorkloadInfo, *, has_advantage: bool) -> _Variant | None:
    if not need.may_preempt(info, need.queue.preemption.reclaim_within_cohort) or not info.uses(need.keys):
        return None
    if has_advantage:
        return _Variant.HIERARCHICAL
    if _is_borrowing_forbidden(need.queue):
        return _Variant.WITHOUT_BORROWING
    borrowing = need.queue.preemption.borrow_within_cohort
    threshold = borrowing.max_priority_threshold if borrowing is not None else None
    if info.priority >= need.info.priority or (threshold is not None and info.priority > threshold):
        return _Variant.WITHOUT_BORROWING
    return _Variant.WHILE_BORROWING


def _is_valid(need: Need, candidate: _Candidate, snapshot: Snapshot, *, may_borrow: bool) -> bool:
    """Return True if a candidate still uses quota that is not its own after the earlier candidates are gone."""
    if candidate.variant is _Variant.WITHIN_QUEUE:
        return True
    if may_borrow and candidate.variant is _Variant.WITHOUT_BORROWING:
        return False
    node = snapshot.queues[candidate.info.cluster_queue].node
    if node.is_within_quota(need.keys):
        return False
    for ancestor in node.ancestors:
        if ancestor is candidate.top:
            break
        if ancestor.is_within_quota(need.keys):
            return False
    return True
