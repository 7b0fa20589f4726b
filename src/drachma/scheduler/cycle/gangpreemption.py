"""Preemption for a gang: finds the less important pods whose eviction makes room for the whole gang. Pure.

As upstream does it, all pods that are less important than the gang are removed from a fork of the cluster, and the gang
search looks for nodes there. If the gang does not fit even then, no pod is evicted for it. If it does, victims come
back one by one unless they are in the way of the gang's pods on their new nodes. These nodes are nominated for the
gang's pods, and the victims that have not come back are evicted, on any node.

Evicting pods frees no devices: a claim keeps its devices until it is deallocated. With the gate
DrachmaDevicePreemption, a gang with claims evicts the fewest and least important pods that free enough devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from drachma.scheduler.cycle import gangsearch, podcycle
from drachma.scheduler.cycle.decision import Aborted, Placed
from drachma.scheduler.framework import victims
from drachma.scheduler.framework.eviction import Eviction, Preemptor, freed_devices
from drachma.scheduler.snapshot import Snapshot, gangs, podaffinity, podinfo

_ANYWHERE: Final = "cluster"
"""Upstream's word for the place of such an eviction. An eviction for one pod has the name of a node instead."""

_PREFIX: Final = "pod group preemption: "

Infos = Sequence[podinfo.PodInfo]
Search = Callable[[Snapshot], gangsearch.Outcome]
"""Function that searches nodes for the gang in a snapshot."""


class Room(NamedTuple):
    """Nodes for enough pods of the gang, after an eviction."""

    message: str
    eviction: Eviction
    placements: tuple[Placed, ...]

    @property
    def nodes(self) -> Mapping[str, str]:
        """Nodes to nominate, by the uids of pods."""
        return {placed.info.uid: placed.node for placed in self.placements}


class NoRoom(NamedTuple):
    """Outcome without evictions."""

    message: str
    is_under_way: bool = False
    """True if the last eviction has not taken effect yet."""
    is_final: bool = False
    """True if no pod is less important than the gang."""

    @property
    def nodes(self) -> Mapping[str, str] | None:
        """Empty to end all nominations; None to leave them as they are."""
        return None if self.is_under_way else {}


def preempt(
    cycle: podcycle.Cycle,
    snapshot: Snapshot,
    members: Infos,
    *,
    gang: gangs.Gang,
    preemptor: Preemptor,
    search: Search,
    describe: Callable[[gangsearch.Short], str],
) -> Room | NoRoom:
    """Return the pods to evict for the waiting members of a gang that does not fit, or the reason why none are.

    ``describe`` gives the message for a gang that does not fit even without the less important pods.
    """
    priority = min(info.priority for info in members) if gang.priority is None else gang.priority
    if any(info.pod.spec.preemption_policy == "Never" for info in members):
        return NoRoom(f"{_PREFIX}not eligible due to preemptionPolicy=Never.")
    if _is_under_way(snapshot, members, priority):
        return ongoing()
    victim_candidates = victims.candidates_below(priority, snapshot, snapshot.nodes)
    if not victim_candidates:
        return NoRoom(f"{_PREFIX}No preemption victims found for incoming preemptor", is_final=True)
    fork = snapshot.fork()
    for info in members:
        # Earlier nominations are void now, and would be in the way of the members themselves.
        fork.nominations.remove(info.uid)
    if snapshot.frees_devices and any(info.needs_devices for info in members):
        return _preempt_for_devices(fork, members, victim_candidates, preemptor=preemptor, search=search)
    for each in victim_candidates:
        each.leave(fork)
    outcome = search(fork)
    match outcome:
        case gangsearch.Short():
            return NoRoom(f"{_PREFIX}{describe(outcome)}")
        case Aborted(message=message):
            return NoRoom(f"{_PREFIX}{message}")
        case gangsearch.Together(placements=placements):
            spared = _spare(cycle, fork, victim_candidates, placements)
            count = len(spared.victims)
            return Room(
                f"{_PREFIX}found a placement for podgroup, preempting {count} victims",
                Eviction(preemptor, _ANYWHERE, spared.victims, spared.violations),
                placements,
            )


def _preempt_for_devices(
    snapshot: Snapshot,
    members: Infos,
    victim_candidates: Sequence[victims.Victim],
    *,
    preemptor: Preemptor,
    search: Search,
) -> Room | NoRoom:
    """Return the fewest and least important pods whose eviction makes room and frees devices for a gang."""

    def search_without(evicted_victims: Sequence[victims.Victim]) -> gangsearch.Outcome:
        fork = snapshot.fork()
        for each in evicted_victims:
            each.leave(fork)
        return search(fork)

    chosen = victims.choose(
        victim_candidates,
        snapshot,
        fits_without=lambda each: isinstance(search_without(each), gangsearch.Together),
    )
    if chosen is None:
        return NoRoom(f"{_PREFIX}no eviction within the disruption budgets frees enough devices")
    uids = {each.metadata.uid for each in chosen.victims}
    outcome = search_without([each for each in victim_candidates if all(v.metadata.uid in uids for v in each.pods)])
    assert isinstance(outcome, gangsearch.Together), "the chosen victims make room"
    freed = tuple(snapshot.freed_claims(chosen.victims))
    message = f"{_PREFIX}found a placement for podgroup, preempting {len(chosen.victims)} victims"
    waiting_pods = tuple(info.pod for info in members)
    return Room(
        message + freed_devices(freed),
        Eviction(preemptor, _ANYWHERE, chosen.victims, 0, freed, waiting_pods),
        outcome.placements,
    )


def ongoing() -> NoRoom:
    """Return the outcome for a gang whose last evictions have not had their effect yet."""
    return NoRoom(f"{_PREFIX}ongoing preemption on nominated nodes", is_under_way=True)


def _spare(
    cycle: podcycle.Cycle, fork: Snapshot, victim_candidates: Sequence[victims.Victim], placements: Sequence[Placed]
) -> victims.Spared:
    nodes = {placed.node for placed in placements}
    # If no rule depends on other pods in the cluster, pods on other nodes cannot be in the way.
    is_local = all(podinfo.is_local(placed.info.pod) for placed in placements) and not any(
        podaffinity.is_stated(victim) for each in victim_candidates for victim in each.pods
    )
    return victims.spare(
        victim_candidates,
        fork,
        fits=lambda: _fits(cycle, fork, placements),
        is_in_the_way=lambda each: not is_local or each.is_on(nodes),
    )


def _fits(cycle: podcycle.Cycle, snapshot: Snapshot, placements: Iterable[Placed]) -> bool:
    """Return True if the pods fit on their nodes, one after the other."""
    trial = snapshot.fork()
    for placed in placements:
        node = trial.nodes.find(placed.node)
        assert node is not None, "pods go to nodes that exist"
        decided = cycle.decide(placed.info, trial, excluded=trial.nodes.all_nodes & ~node.bit)
        if not isinstance(decided, Placed):
            return False
        trial.commit(decided.assignment)
    return True


def _is_under_way(snapshot: Snapshot, members: Infos, priority: int) -> bool:
    """Return True if an evicted pod is still on a node that is nominated for a member."""
    names = {snapshot.nominations.node_of(info.uid) or info.pod.status.nominated_node_name for info in members}
    nominated_nodes = (snapshot.nodes.find(name) for name in names if name)
    return any(
        snapshot.gangs.priority_of(booking.pod) < priority and victims.is_being_preempted(booking.pod)
        for node in nominated_nodes
        if node is not None
        for booking in node.ledger.bookings.values()
    )
