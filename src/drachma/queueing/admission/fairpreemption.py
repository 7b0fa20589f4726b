"""Preemption by fair shares: from the queues with the highest shares, as long as the result is fair.

The queue to take from is selected again each time, from the root down: the child with the highest share that has
candidates. The strategies decide whether one of its workloads may be preempted: the preemptor's share with the new
workload may be at most the other queue's share after the preemption (S2-a), or less than the other queue's share before
it (S2-b). A preemptor within its nominal quota may preempt in any case. The rules and their names are those of Kueue's
KEP-1714.
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
    """Return the workloads to preempt, or none if preemption does not help or is not fair."""
    candidates = sorted(_candidates(need, snapshot), key=preemption.order(need, snapshot))
    if not candidates:
        return []
    with with_usage(need.queue.node, need.usage):
        # Shares include the new workload.
        fits, removed, to_retry = _first_strategy(need, snapshot, candidates, settings)
        if not fits and len(settings.strategies) > 1:
            fits = _second_strategy(need, snapshot, to_retry, removed)
    if not fits:
        preemption.restore(removed, snapshot)
        return []
    targets_that_matter = preemption.give_back(removed, snapshot, lambda: need.fits(may_borrow=True))
    preemption.restore(targets_that_matter, snapshot)
    return targets_that_matter


def _candidates(need: Need, snapshot: Snapshot) -> Iterator[WorkloadInfo]:
    policies = need.queue.preemption
    node = need.queue.node
    if policies.within_cluster_queue != clusterqueue.NEVER:
        for info in need.queue.workloads.values():
            if need.may_preempt(info, policies.within_cluster_queue) and info.uses(need.keys):
                yield info
    if node.parent is None or policies.reclaim_within_cohort == clusterqueue.NEVER:
        return
    for rival in node.root.walk_queues():
        if rival is node or not any(rival.is_borrowing(key) for key in need.keys):
            continue
        for info in snapshot.queues[rival.name].workloads.values():
            if need.may_preempt(info, policies.reclaim_within_cohort) and info.uses(need.keys):
                yield info


class _Ordering:
    """Queues to take from, with their candidates. The caller pops a candidate or drops the queue in each iteration."""

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
        """Return the queue with the highest share below a node, or None if only a branch was pruned."""
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
        """Return the two children of the lowest common cohort that contain the workload's queue and the other queue."""
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
    """Return whether the need fits in the end, the workloads removed for that, and those to try again."""
    ordering = _Ordering(need, candidates)
    removed: list[Target] = []
    to_retry: list[WorkloadInfo] = []
    strategy = settings.strategies[0]
    is_entitled = settings.gates.on(Gate.FAIR_SHARING_PREEMPT_WITHIN_NOMINAL) and not any(
        need.queue.node.is_borrowing(key) for key in need.keys
    )
    for queue in ordering:
        if queue is need.queue.node or is_entitled:
            reason = preemption.IN_CLUSTER_QUEUE if queue is need.queue.node else preemption.IN_COHORT_RECLAMATION
            if _take(need, snapshot, ordering.pop(queue), removed, reason=reason):
                return True, removed, []
            continue
        mine, theirs = ordering.rivals(queue)
        my_share, their_share = share(mine), share(theirs)
        if math.isinf(my_share.weighted) and not math.isinf(their_share.weighted):
            # No preemption in this queue can make the result fair.
            while ordering.has_candidate(queue):
                to_retry.append(ordering.pop(queue))
            continue
        while ordering.has_candidate(queue):
            info = ordering.pop(queue)
            with with_less_usage(queue, info.usage):
                share_after = share(theirs)
            if _is_fair(strategy, my_share, their_share, share_after):
                if _take(need, snapshot, info, removed, reason=preemption.IN_COHORT_FAIR_SHARING):
                    return True, removed, to_retry
                break
            to_retry.append(info)
    return False, removed, to_retry


def _second_strategy(need: Need, snapshot: Snapshot, to_retry: list[WorkloadInfo], removed: list[Target]) -> bool:
    """S2-b: try the first candidate of each queue, while the queue's share exceeds the preemptor's."""
    ordering = _Ordering(need, to_retry)
    for queue in ordering:
        mine, theirs = ordering.rivals(queue)
        info = ordering.pop(queue)
        if share(mine).order < share(theirs).order and _take(
            need, snapshot, info, removed, reason=preemption.IN_COHORT_FAIR_SHARING
        ):
            return True
        ordering.drop(queue)
    return False


def _is_fair(strategy: str, mine: Share, theirs: Share, theirs_after: Share) -> bool:
    if strategy == FINAL_SHARE:
        return mine.order <= theirs_after.order
    return strategy == INITIAL_SHARE and mine.order < theirs.order


def _take(need: Need, snapshot: Snapshot, info: WorkloadInfo, removed: list[Target], *, reason: str) -> bool:
    """Remove a workload, and return True if the need fits then."""
    snapshot.withdraw(info)
    removed.append(Target(info, reason, snapshot.queues[info.cluster_queue]))
    with with_less_usage(need.queue.node, need.usage):
        return need.fits(may_borrow=True)
