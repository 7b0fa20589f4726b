"""DefaultPreemption: finds the less important pods to evict so that a pod fits, and their node.

It only decides, in forks of the snapshot; the eviction is a remedy. As upstream, evictions free no devices: a claim
keeps its devices until it is deallocated. Disruption budgets are respected if possible, and exceeded otherwise.

With the gate DrachmaDevicePreemption, a pod that needs devices also evicts pods that hold them. Then the fewest and
least important victims are evicted, and disruption budgets are never exceeded.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from drachma.api import pod
from drachma.claims import podclaims
from drachma.scheduler.framework import cyclestate, diagnosis, eviction, plugin, verdict, victims
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

    def __init__(self, rng: random.Random) -> None:
        self._rng: Final = rng

    def post_filter(
        self, cycle: cyclestate.CycleState, unfit: diagnosis.Diagnosis, *, filters: plugin.Filters
    ) -> plugin.PostFilterResult:
        """Return the best eviction, or why there is none."""
        problem = _ineligible(cycle, unfit)
        if problem:
            return _result(problem)
        potential = list(nodeclass.slots(unfit.resolvable))
        rejections: list[tuple[verdict.Rejection, int]] = []
        candidates: list[eviction.Eviction] = []
        is_harmless = False
        start = self._rng.randrange(len(potential)) if potential else 0
        enough = min(max(len(potential) * _CANDIDATES_PERCENT // 100, _LEAST_CANDIDATES), len(potential))
        for slot in potential[start:] + potential[:start]:
            trial = cycle.on(cycle.snapshot.fork())
            outcome = _dry_run(trial, trial.snapshot.nodes.at(slot), filters=filters)
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
        message += eviction.freed_devices(best.freed)
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
) -> eviction.Eviction | verdict.Rejection:
    """Return the eviction from a node, or why it would not help. The trial's snapshot is changed."""
    fork = trial.snapshot
    if fork.frees_devices and trial.pod.needs_devices:
        return _dry_run_for_devices(trial, node, filters=filters)
    victim_candidates = victims.candidates_below(trial.pod.priority, fork, (node,))
    if not victim_candidates:
        return _NO_VICTIMS
    for each in victim_candidates:
        each.leave(fork)
    passing, rejections = filters.filter_with_nominated_pods(trial, node.bit)
    if not passing:
        return rejections[0][0]
    spared = victims.spare(
        victim_candidates, fork, fits=lambda: bool(filters.filter_with_nominated_pods(trial, node.bit)[0])
    )
    if not spared.victims:
        raise verdict.AbortError(f'expected at least one victim pod on node "{node.name}"')
    preemptor = eviction.Preemptor("pod", trial.pod.uid)
    return eviction.Eviction(preemptor, node.name, spared.victims, spared.violations)


def _dry_run_for_devices(
    trial: cyclestate.CycleState, node: nodeinfo.NodeInfo, *, filters: plugin.Filters
) -> eviction.Eviction | verdict.Rejection:
    """Return the eviction that frees the devices that a pod needs on a node, or why there is none."""
    snapshot = trial.snapshot
    places: list[nodeinfo.NodeInfo] = [node]
    if next(iter(snapshot.devices.catalog.near("")), None) is not None:
        # Pods on other nodes may hold devices that are available on several nodes.
        places = list(snapshot.nodes)
    candidates = [
        each
        for each in victims.candidates_below(trial.pod.priority, snapshot, places)
        if each.is_on((node.name,)) or any(map(podclaims.uses_claims, each.pods))
    ]
    if not candidates:
        return _NO_VICTIMS

    def fits_without(evicted_victims: Sequence[victims.Victim]) -> bool:
        without = trial.on(snapshot.fork())
        for each in evicted_victims:
            each.leave(without.snapshot)
        return bool(filters.filter_with_nominated_pods(without, node.bit)[0])

    chosen = victims.choose(candidates, snapshot, fits_without=fits_without)
    if chosen is None:
        return _NOT_HELPFUL
    freed = tuple(snapshot.freed_claims(chosen.victims))
    preemptor = eviction.Preemptor("pod", trial.pod.uid)
    return eviction.Eviction(preemptor, node.name, chosen.victims, 0, freed, (trial.pod.pod,))


def _rank(candidate: eviction.Eviction) -> tuple[int, int, int, int, float]:
    """Return the sort key of candidates, best first: by exceeded budgets, and then as upstream by the victims.

    That is by the highest priority, the sum of priorities, their number, and the age of the most important victim.
    """
    priorities = [_priority(victim) for victim in candidate.victims]
    highest = max(priorities)
    earliest = min(victims.start_time(victim) for victim in candidate.victims if _priority(victim) == highest)
    return (
        candidate.violations,
        priorities[0],
        sum(priority + _PRIORITY_OFFSET for priority in priorities),
        len(priorities),
        -earliest.timestamp(),
    )


def _priority(victim: pod.Pod) -> int:
    return victim.spec.priority or 0
