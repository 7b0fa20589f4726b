"""Effect of preemption on each holder: the workloads that would be preempted, and the rules that protect the others.

:mod:`admission.preemptionoracle` decides about preemption. Here each of its rules is applied to one holder at a time,
so that the answer names the policy, the priority or the quota that protects the holder.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from drachma.queueing import amounts
from drachma.queueing.admission.entry import Entry
from drachma.queueing.admission.preemption import Need
from drachma.queueing.admission.quotatree import Node
from drachma.queueing.explanation.question import Question
from drachma.queueing.explanation.shortage import Shortage
from drachma.queueing.kinds import clusterqueue
from drachma.queueing.workloads.requests import FlavorResource
from drachma.queueing.workloads.workloadinfo import WorkloadInfo

_NOT_ENOUGH: Final = "may be preempted, but that would not be enough"
_NOT_FAIR: Final = "may be preempted, but as far as fair sharing goes that would not be enough"
_NOT_NEEDED: Final = "may be preempted, and need not be"


class Verdict(msgspec.Struct, frozen=True):
    """Effect of preemption on a holder: the reason for which it would be preempted, or is protected."""

    workload: str
    queue: str
    priority: int
    is_target: bool
    reason: str


def judge(question: Question, entry: Entry, shortages: Iterable[Shortage]) -> tuple[Verdict, ...]:
    """Return verdicts about all holders of the missing quota, those that would be preempted first."""
    needed: dict[FlavorResource, int] = {}
    for each in shortages:
        needed[each.key] = max(needed.get(each.key, 0), each.request)
    need = Need(question.info, question.queue, needed, frozenset(needed), question.now)
    targets = {target.info.key: target.reason for target in entry.victims}
    unprotected = _NOT_NEEDED if targets else _NOT_FAIR if question.settings.fair_sharing else _NOT_ENOUGH
    verdicts = [
        Verdict(
            info.key,
            info.cluster_queue,
            info.priority,
            info.key in targets,
            targets.get(info.key) or _protection(question, need, info) or unprotected,
        )
        for info in question.holders(need.keys)
    ]
    return tuple(sorted(verdicts, key=lambda each: not each.is_target))


def _protection(question: Question, need: Need, holder: WorkloadInfo) -> str:
    """Return the rule that protects a holder from preemption, or an empty text."""
    if holder.is_evicted:
        return "is evicted already, and still holds what it had"
    is_own = holder.cluster_queue == question.queue.name
    return _own(need, holder) if is_own else _others(question, need, holder)


def _own(need: Need, holder: WorkloadInfo) -> str:
    policy = need.queue.preemption.within_cluster_queue
    if policy == clusterqueue.NEVER:
        return f"withinClusterQueue of {need.queue.name} is Never"
    return "" if need.may_preempt(holder, policy) else _rank(need, holder, f"withinClusterQueue is {policy}")


def _others(question: Question, need: Need, holder: WorkloadInfo) -> str:
    policies = need.queue.preemption
    policy = policies.reclaim_within_cohort
    if policy == clusterqueue.NEVER:
        return f"reclaimWithinCohort of {need.queue.name} is Never"
    state = question.snapshot.queues.get(holder.cluster_queue)
    if state is None:
        return f"cluster queue {holder.cluster_queue} is inactive"
    owner = _protecting_node(state.node, need)
    if owner is not None:
        kind = "cluster queue" if owner.is_queue else "cohort"
        return f"{kind} {owner.name} uses no more than it has"
    if not need.may_preempt(holder, policy):
        return _rank(need, holder, f"reclaimWithinCohort is {policy}")
    if question.settings.fair_sharing:
        return ""
    borrowing = policies.borrow_within_cohort
    if not _would_borrow(need):
        return ""
    if borrowing is None or borrowing.policy == clusterqueue.NEVER:
        return f"{need.queue.name} would have to borrow, and its borrowWithinCohort is Never"
    if holder.priority >= need.info.priority:
        return _rank(need, holder, f"{need.queue.name} would have to borrow")
    threshold = borrowing.max_priority_threshold
    if threshold is not None and holder.priority > threshold:
        return f"its priority {holder.priority} is above maxPriorityThreshold {threshold} of borrowWithinCohort"
    return ""


def _protecting_node(node: Node, need: Need) -> Node | None:
    """Return the holder's queue or its cohort, below the lowest common cohort, that borrows nothing."""
    common = set(map(id, need.queue.node.ancestors))
    each: Node | None = node
    while each is not None and id(each) not in common:
        if each.is_within_quota(need.keys):
            return each
        each = each.parent
    return None


def _would_borrow(need: Need) -> bool:
    node = need.queue.node
    return any(
        amounts.plus(node.usage.get(key, 0), amount) > node.quota(key).nominal for key, amount in need.usage.items()
    )


def _rank(need: Need, holder: WorkloadInfo, rule: str) -> str:
    mine = need.info.priority
    if holder.priority == mine:
        return f"its priority {holder.priority} is the same, and {rule}"
    return f"its priority {holder.priority} is not below {mine}, and {rule}"
