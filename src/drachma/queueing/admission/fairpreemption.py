"""Preemption by fair shares: from whoever has most beyond their own, as long as that stays fair.

The queue to take from is found anew each time, from the root down: the child with the highest share that has
candidates. Whether one of its workloads may go is up to the strategies: the share of who preempts, with the new
workload, may be at most that of who gives, after it (S2-a), or less than what that is before it (S2-b). Who stays
within their nominal quota may take in any case. The rules and their names are those of Kueue's KEP-1714.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from drachma.queueing.admission import preemption
from drachma.queueing.admission.dominantshare import LOWEST, Share, share
from drachma.queueing.admission.preemption import Need, Target
from drachma.queueing.admission.quotatree import Node
from drachma.queueing.admission.snapshot import Snapshot, with_less_usage, with_usage
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.kinds import clusterqueue
from drachma.queueing.workloads.settings import FINAL_SHARE, INITIAL_SHARE, Settings
from drachma.queueing.workloads.workloadinfo import WorkloadInfo


def targets(need: Need, snapshot: Snapshot, settings: Settings) -> list[Target]:
    """Workloads that have to go; none where that does not help or is not fair."""
    candidates = sorted(_candidates(need, snapshot), key=preemption.order(need, snapshot))
    if not candidates:
        return []
    with with_usage(need.queue.node, need.usage):
        # Shares are those with the new workload.
        fits, taken, left = _first_strategy(need, snapshot, candidates, settings)
        if not fits and len(settings.strategies) > 1:
            fits = _second_strategy(need, snapshot, left, taken)
    if not fits:
        preemption.restore(taken, snapshot)
        return []
    kept = preemption.give_back(taken, snapshot, lambda: need.fits(may_borrow=True))
    preemption.restore(kept, snapshot)
    return kept


def _candidates(need: Need, snapshot: Snapshot) -> Iterator[WorkloadInfo]:
    policies = need.queue.preemption
    node = need.queue.node
    if policies.within_cluster_queue != clusterqueue.NEVER:
        for info in need.queue.workloads.values():
            if need.may_preempt(info, policies.within_cluster_queue) and info.uses(need.keys):
                yield info
    if node.parent is None or policies.reclaim_within_cohort == clusterqueue.NEVER:
        return
    for other in node.root.walk_queues():
        if other is node or not any(other.is_borrowing(key) for key in need.keys):
            continue
        for info in snapshot.queues[other.name].workloads.values():
            if need.may_preempt(info, policies.reclaim_within_cohort) and info.uses(need.keys):
                yield info


class _Ordering:
    """Queues to take from, with their candidates; whoever iterates pops a candidate or drops the queue each time."""

    def __init__(self, need: Need, candidates: list[WorkloadInfo]) -> None:
        self._need = need
        self._own = need.queue.node
        self._ancestors = frozenset(map(id, self._own.ancestors))
        self._candidates: dict[str, list[WorkloadInfo]] = {}
        for info in candidates:
            self._candidates.setdefault(info.cluster_queue, []).append(info)
        self._pruned: set[int] = set()

    def __iter__(self) -> Iterator[Node]:
        if self._own.parent is None:
            while id(self._own) not in self._pruned and self.has_candidate(self._own):
                yield self._own
            return
        root = self._own.root
        while id(root) not in self._pruned:
            queue = self._next(root)
            if queue is not None:
                yield queue

    def has_candidate(self, queue: Node) -> bool:
        return bool(self._candidates.get(queue.name))

    def pop(self, queue: Node) -> WorkloadInfo:
        return self._candidates[queue.name].pop(0)

    def drop(self, queue: Node) -> None:
        self._pruned.add(id(queue))

    def _next(self, cohort: Node) -> Node | None:
        """The queue with the highest share, from here down; None if only something was pruned."""
        queue, queue_share = self._highest_queue(cohort)
        child, child_share = self._highest_cohort(cohort)
        if queue is None and child is None:
            self._pruned.add(id(cohort))
            return None
        if child is not None and child_share.order >= queue_share.order:
            return self._next(child)
        return queue

    def _highest_queue(self, cohort: Node) -> tuple[Node | None, Share]:
        highest, highest_share = None, LOWEST
        for queue in cohort.queues:
            if id(queue) in self._pruned:
                continue
            current = share(queue)
            if (not current.is_borrowing and queue is not self._own) or not self.has_candidate(queue):
                self._pruned.add(id(queue))
            elif highest is not None and current.order == highest_share.order:
                first, other = self._candidates[queue.name][0], self._candidates[highest.name][0]
                if self._need.rank(first) < self._need.rank(other):
                    highest = queue
            elif current.order > highest_share.order:
                highest, highest_share = queue, current
        return highest, highest_share

    def _highest_cohort(self, cohort: Node) -> tuple[Node | None, Share]:
        highest, highest_share = None, LOWEST
        for child in cohort.cohorts:
            if id(child) in self._pruned:
                continue
            current = share(child)
            if not current.is_borrowing and id(child) not in self._ancestors:
                self._pruned.add(id(child))
            elif current.order >= highest_share.order:
                highest, highest_share = child, current
        return highest, highest_share

    def rivals(self, queue: Node) -> tuple[Node, Node]:
        """The two children of the lowest common cohort that the workload's queue and another are in."""
        common = next(node for node in queue.ancestors if id(node) in self._ancestors)
        return _below(self._own, common), _below(queue, common)


def _below(queue: Node, common: Node) -> Node:
    node = queue
    while node.parent is not None and node.parent is not common:
        node = node.parent
    return node


def _first_strategy(
    need: Need, snapshot: Snapshot, candidates: list[WorkloadInfo], settings: Settings
) -> tuple[bool, list[Target], list[WorkloadInfo]]:
    """Whether the need fits in the end, who was taken away for that, and who may be tried again."""
    ordering = _Ordering(need, candidates)
    taken: list[Target] = []
    left: list[WorkloadInfo] = []
    strategy = settings.strategies[0]
    is_entitled = settings.gates.on(Gate.FAIR_SHARING_PREEMPT_WITHIN_NOMINAL) and not any(
        need.queue.node.is_borrowing(key) for key in need.keys
    )
    for queue in ordering:
        if queue is need.queue.node or is_entitled:
            reason = preemption.IN_CLUSTER_QUEUE if queue is need.queue.node else preemption.IN_COHORT_RECLAMATION
            if _take(need, snapshot, ordering.pop(queue), taken, reason=reason):
                return True, taken, []
            continue
        mine, theirs = ordering.rivals(queue)
        my_share, their_share = share(mine), share(theirs)
        if math.isinf(my_share.weighted) and not math.isinf(their_share.weighted):
            # Nothing that they give up can make this fair.
            while ordering.has_candidate(queue):
                left.append(ordering.pop(queue))
            continue
        while ordering.has_candidate(queue):
            info = ordering.pop(queue)
            with with_less_usage(queue, info.usage):
                share_after = share(theirs)
            if _is_fair(strategy, my_share, their_share, share_after):
                if _take(need, snapshot, info, taken, reason=preemption.IN_COHORT_FAIR_SHARING):
                    return True, taken, left
                break
            left.append(info)
    return False, taken, left


def _second_strategy(need: Need, snapshot: Snapshot, left: list[WorkloadInfo], taken: list[Target]) -> bool:
    """S2-b: once for each queue, its first candidate, as long as the queue has more than who preempts."""
    ordering = _Ordering(need, left)
    for queue in ordering:
        mine, theirs = ordering.rivals(queue)
        info = ordering.pop(queue)
        if share(mine).order < share(theirs).order and _take(
            need, snapshot, info, taken, reason=preemption.IN_COHORT_FAIR_SHARING
        ):
            return True
        ordering.drop(queue)
    return False


def _is_fair(strategy: str, mine: Share, theirs: Share, theirs_after: Share) -> bool:
    if strategy == FINAL_SHARE:
        return mine.order <= theirs_after.order
    return strategy == INITIAL_SHARE and mine.order < theirs.order


def _take(need: Need, snapshot: Snapshot, info: WorkloadInfo, taken: list[Target], *, reason: str) -> bool:
    """Take a workload away; whether the need fits then."""
    snapshot.remove(info)
    taken.append(Target(info, reason, snapshot.queues[info.cluster_queue]))
    with with_less_usage(need.queue.node, need.usage):
        return need.fits(may_borrow=True)
