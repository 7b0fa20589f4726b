"""DefaultPreemption: finds the less important pods to evict so that a pod fits, and their node.

It only decides, in forks of the snapshot; the eviction is a remedy. As upstream, evictions free no devices: a claim
keeps its devices until it is deallocated. Disruption budgets are respected if possible, and exceeded otherwise.

Pods of one shape come in hundreds. If the filters read nothing but the node and the pods on it, the outcome of a dry
run is kept for the next pod, and only nodes that changed are tried again
(:mod:`~drachma.scheduler.snapshot.trialmemory`).

With the gate DrachmaDevicePreemption, a pod that needs devices also evicts pods that hold them. Then the fewest and
least important victims are evicted, and disruption budgets are never exceeded.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final, NamedTuple

from drachma.api import pod
from drachma.bounds import effort
from drachma.claims import podclaims
from drachma.scheduler.framework import cyclestate, diagnosis, eviction, plugin, verdict, victims
from drachma.scheduler.snapshot import gangs, nodeclass, nodeinfo, trialmemory

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
        candidates: list[_Candidate] = []
        is_harmless = False
        trials = _Trials(cycle, filters)
        start = self._rng.randrange(len(potential)) if potential else 0
        enough = min(max(len(potential) * _CANDIDATES_PERCENT // 100, _LEAST_CANDIDATES), len(potential))
        for slot in potential[start:] + potential[:start]:
            outcome = trials.outcome(slot)
            if isinstance(outcome, verdict.Rejection):
                rejections.append((outcome, 1 << slot))
                continue
            candidates.append(outcome)
            is_harmless = is_harmless or not outcome.eviction.violations
            if is_harmless and len(candidates) >= enough:
                break
        if not candidates:
            absent = unfit.node_count - len(rejections)
            failed = diagnosis.Diagnosis(
                unfit.node_count, None, tuple(rejections), (_NOT_HELPFUL, absent) if absent else None
            )
            return _result(failed.message(), is_hopeless=True)
        # The outcome may be one for an earlier pod.
        best = min(candidates, key=_rank).eviction._replace(preemptor=eviction.Preemptor("pod", cycle.pod.uid))
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


class _Candidate(NamedTuple):
    """Eviction that would help, with its rank among others. Lower ranks are better."""

    eviction: eviction.Eviction
    rank: tuple[int, int, int, int, float]


class _Outcome(NamedTuple):
    """Outcome of a dry run on one node."""

    value: _Candidate | verdict.Rejection


class _Trials:
    """Dry runs of one pod."""

    def __init__(self, cycle: cyclestate.CycleState, filters: plugin.Filters) -> None:
        self._cycle: Final = cycle
        self._filters: Final = filters
        self._answers: Final = _answers(cycle, filters)
        self._shared: cyclestate.CycleState | None = None
        """Trial of all nodes whose pods do not matter to each other."""

    def outcome(self, slot: int) -> _Candidate | verdict.Rejection:
        """Return the eviction from a node, or why it would not help."""
        effort.spend(1)
        cycle, answers = self._cycle, self._answers
        node = cycle.snapshot.nodes.at(slot)
        if answers is None:
            return self._try(cycle.on(cycle.snapshot.fork()), slot)
        nominees = cycle.snapshot.nominations.ahead_on(cycle.pod, node.name)
        kept = answers.find(node, nominees)
        if kept is not None:
            return kept.value
        if _has_groups(node):
            return self._try(cycle.on(cycle.snapshot.fork()), slot)
        if self._shared is None:
            self._shared = cycle.on(cycle.snapshot.fork())
        outcome = self._try(self._shared, slot)
        answers.keep(node, nominees, _Outcome(outcome))
        return outcome

    def _try(self, trial: cyclestate.CycleState, slot: int) -> _Candidate | verdict.Rejection:
        result = _dry_run(trial, trial.snapshot.nodes.at(slot), filters=self._filters)
        return result if isinstance(result, verdict.Rejection) else _Candidate(result, _rank_of(result))


def _answers(cycle: cyclestate.CycleState, filters: plugin.Filters) -> trialmemory.Answers[_Outcome] | None:
    """Return the outcomes of dry runs for earlier pods of the same shape, or None if they depend on more than nodes."""
    snapshot = cycle.snapshot
    question = filters.local_question(cycle)
    return None if question is None else snapshot.trials.answers((question, snapshot.budgets.version), _Outcome)


def _has_groups(node: nodeinfo.NodeInfo) -> bool:
    """Return True if a pod of the node belongs to a group, whose priority and other pods matter too."""
    return any(gangs.key_of(booking.pod) is not None for booking in node.ledger.bookings.values())


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


def _rank(candidate: _Candidate) -> tuple[int, int, int, int, float]:
    return candidate.rank


def _rank_of(candidate: eviction.Eviction) -> tuple[int, int, int, int, float]:
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
