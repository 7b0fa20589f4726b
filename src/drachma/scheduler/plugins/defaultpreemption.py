"""DefaultPreemption: which less important pods to evict so that a pod fits, and from which node.

It only decides, in forks of the snapshot; evicting is up to the scheduler. Devices are not freed by evicting pods here,
as upstream: what a claim holds, it holds until it is deallocated. Disruption budgets are kept where that is possible,
and overdrawn where it is not.
"""

from __future__ import annotations

import random
from typing import Final

from drachma.api import pod
from drachma.scheduler.framework import cyclestate, diagnosis, plugin, remedy, verdict, victims
from drachma.scheduler.snapshot import nodeclass, nodeinfo

_NAME: Final = "DefaultPreemption"
_NOT_HELPFUL: Final = verdict.Rejection(_NAME, ("Preemption is not helpful for scheduling",))
_NO_VICTIMS: Final = verdict.Rejection(_NAME, ("No preemption victims found for incoming pod",))
_LEAST_CANDIDATES: Final = 100
_CANDIDATES_PERCENT: Final = 10
_PRIORITY_OFFSET: Final = 2**31


class DefaultPreemption:
    """The plugin."""

    name: Final = _NAME

    def __init__(self, chance: random.Random) -> None:
        self._chance: Final = chance

    def post_filter(
        self, cycle: cyclestate.CycleState, unfit: diagnosis.Diagnosis, *, filters: plugin.Filters
    ) -> plugin.PostFilterResult:
        """The best node to evict pods from, or why there is none."""
        problem = _ineligible(cycle, unfit)
        if problem:
            return _result(problem)
        potential = list(nodeclass.slots(unfit.resolvable))
        rejections: list[tuple[verdict.Rejection, int]] = []
        candidates: list[remedy.Eviction] = []
        is_harmless = False
        start = self._chance.randrange(len(potential)) if potential else 0
        enough = min(max(len(potential) * _CANDIDATES_PERCENT // 100, _LEAST_CANDIDATES), len(potential))
        trial = cycle.on(cycle.snapshot.fork()) if potential else cycle
        for slot in potential[start:] + potential[:start]:
            trial.snapshot.start()
            outcome = _dry_run(trial, trial.snapshot.nodes.at(slot), filters=filters)
            trial.snapshot.revert()
            if isinstance(outcome, verdict.Rejection):
                rejections.append((outcome, 1 << slot))
                continue
            candidates.append(outcome)
            is_harmless = is_harmless or not outcome.violations
            if is_harmless and len(candidates) >= enough:
                break
        if not candidates:
            absent = unfit.node_count - len(rejections)
            failed = diagnosis.Diagnosis(
                unfit.node_count, None, tuple(rejections), (_NOT_HELPFUL, absent) if absent else None
            )
            return _result(failed.message(), is_hopeless=True)
        best = min(candidates, key=_rank)
        message = f"found a potential placement for pod on node {best.node}, preempting {len(best.victims)} victims"
        return _result(message)._replace(node=best.node, remedies=(best,))


def _result(message: str, *, is_hopeless: bool = False) -> plugin.PostFilterResult:
    return plugin.PostFilterResult(f"preemption: {message}", is_hopeless=is_hopeless)


def _ineligible(cycle: cyclestate.CycleState, unfit: diagnosis.Diagnosis) -> str:
    info, snapshot = cycle.pod, cycle.snapshot
    if info.pod.spec.preemption_policy == "Never":
        return "not eligible due to preemptionPolicy=Never."
    node = snapshot.nodes.find(snapshot.nominations.node_of(info.uid) or info.pod.status.nominated_node_name)
    if node is None or any(nodes & node.bit and not rejection.is_resolvable for rejection, nodes in unfit.rejections):
        return ""
    for booking in node.ledger.bookings.values():
        is_lesser = snapshot.gangs.priority_of(booking.pod) < info.priority
        if is_lesser and victims.is_being_preempted(booking.pod):
            return "not eligible due to a terminating pod on the nominated node."
    return ""


def _dry_run(
    trial: cyclestate.CycleState, node: nodeinfo.NodeInfo, *, filters: plugin.Filters
) -> remedy.Eviction | verdict.Rejection:
    """Who would have to go from a node, or why that would not help; the trial's snapshot is changed."""
    fork = trial.snapshot
    lesser = victims.below(trial.pod.priority, fork, (node,))
    if not lesser:
        return _NO_VICTIMS
    for each in lesser:
        each.leave(fork)
    passing, rejections = filters.filter_with_nominated_pods(trial, node.bit)
    if not passing:
        return rejections[0][0]
    spared = victims.spare(lesser, fork, fits=lambda: bool(filters.filter_with_nominated_pods(trial, node.bit)[0]))
    if not spared.victims:
        raise verdict.AbortError(f'expected at least one victim pod on node "{node.name}"')
    return remedy.Eviction(node.name, spared.victims, spared.violations)


def _rank(candidate: remedy.Eviction) -> tuple[int, int, int, int, float]:
    """Candidates in order, best first: by the budgets that are overdrawn, then as upstream by who has to go.

    That is by the highest priority, the sum of priorities, their number, and the age of the most important.
    """
    priorities = [_priority(victim) for victim in candidate.victims]
    highest = max(priorities)
    earliest = min(victims.started(victim) for victim in candidate.victims if _priority(victim) == highest)
    return (
        candidate.violations,
        priorities[0],
        sum(priority + _PRIORITY_OFFSET for priority in priorities),
        len(priorities),
        -earliest.timestamp(),
    )


def _priority(of: pod.Pod) -> int:
    return of.spec.priority or 0
