"""Preemption for a gang: which less important pods have to go so that all of it fits. Nothing outside is changed.

As upstream does it: everybody who is less important than the gang leaves a copy of the cluster, and nodes are looked
for there, by the very search that places gangs. Where the gang does not fit even then, nobody is evicted for it. Where
it does, those come back one by one who are not in the way of its pods on the nodes that these were given. The nodes are
kept for the pods, and who has not come back has to go, wherever it is.

Devices are not freed by evicting pods: what a claim holds, it holds until it is deallocated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from drachma.scheduler import cycle, gangsearch
from drachma.scheduler.decision import Aborted, Placed
from drachma.scheduler.framework import remedy, victims
from drachma.scheduler.snapshot import Snapshot, gangs, podaffinity, podinfo

_ANYWHERE: Final = "cluster"
"""What upstream calls the place of such an eviction, where that of one for a pod has the name of a node."""

_PREFIX: Final = "pod group preemption: "

UNDER_WAY: Final = f"{_PREFIX}ongoing preemption on nominated nodes"

Infos = Sequence[podinfo.PodInfo]
Search = Callable[[Snapshot], gangsearch.Outcome]
"""Looks for nodes for the gang in a cluster."""


class Room(NamedTuple):
    """Nodes for enough pods of the gang, once others are evicted."""

    message: str
    eviction: remedy.Eviction
    placements: tuple[Placed, ...]

    @property
    def nodes(self) -> Mapping[str, str]:
        """The nodes that are kept for pods from now on, by their uids."""
        return {placed.info.uid: placed.node for placed in self.placements}


class NoRoom(NamedTuple):
    """Nobody is to be evicted."""

    message: str
    is_under_way: bool = False
    """Whether that is because the last eviction has not had its effect yet."""

    @property
    def nodes(self) -> Mapping[str, str] | None:
        """No nodes are kept any more; None where those that were stay so."""
        return None if self.is_under_way else {}


def preempt(
    deciding: cycle.Cycle,
    snapshot: Snapshot,
    members: Infos,
    *,
    gang: gangs.Gang,
    search: Search,
    tell: Callable[[gangsearch.Short], str],
) -> Room | NoRoom:
    """Who has to go for the members of a gang that wait and do not fit; ``tell`` says why they do not even then."""
    priority = min(info.priority for info in members) if gang.priority is None else gang.priority
    if any(info.pod.spec.preemption_policy == "Never" for info in members):
        return NoRoom(f"{_PREFIX}not eligible due to preemptionPolicy=Never.")
    if _is_under_way(snapshot, members, priority):
        return NoRoom(UNDER_WAY, is_under_way=True)
    lesser = victims.below(priority, snapshot, snapshot.nodes)
    if not lesser:
        return NoRoom(f"{_PREFIX}No preemption victims found for incoming preemptor")
    fork = snapshot.fork()
    for info in members:
        # Nodes that were kept for them last time are no longer of use, and would be in their own way.
        fork.nominations.remove(info.uid)
    for each in lesser:
        each.leave(fork)
    outcome = search(fork)
    match outcome:
        case gangsearch.Short():
            return NoRoom(f"{_PREFIX}{tell(outcome)}")
        case Aborted(message=message):
            return NoRoom(f"{_PREFIX}{message}")
        case gangsearch.Together(placements=placements):
            spared = _spare(deciding, fork, lesser, placements)
            count = len(spared.victims)
            return Room(
                f"{_PREFIX}found a placement for podgroup, preempting {count} victims",
                remedy.Eviction(_ANYWHERE, spared.victims, spared.violations),
                placements,
            )


def _spare(
    deciding: cycle.Cycle, fork: Snapshot, lesser: Sequence[victims.Victim], placements: Sequence[Placed]
) -> victims.Spared:
    nodes = {placed.node for placed in placements}
    # Where nobody goes by who else is in the cluster, pods on other nodes are in nobody's way.
    is_local = all(podinfo.is_local(placed.info.pod) for placed in placements) and not any(
        podaffinity.is_stated(victim) for each in lesser for victim in each.pods
    )
    return victims.spare(
        lesser,
        fork,
        fits=lambda: _fits(deciding, fork, placements),
        is_in_the_way=lambda each: not is_local or each.is_on(nodes),
    )


def _fits(deciding: cycle.Cycle, snapshot: Snapshot, placements: Iterable[Placed]) -> bool:
    """Whether the pods can go to their nodes, one after the other."""
    trial = snapshot.fork()
    for placed in placements:
        node = trial.nodes.find(placed.node)
        assert node is not None, "pods go to nodes that exist"
        decided = deciding.decide(placed.info, trial, besides=trial.nodes.everyone & ~node.bit)
        if not isinstance(decided, Placed):
            return False
        trial.commit(decided.assignment)
    return True


def _is_under_way(snapshot: Snapshot, members: Infos, priority: int) -> bool:
    """Whether somebody who was evicted is still on a node that is kept for a member."""
    names = {snapshot.nominations.node_of(info.uid) or info.pod.status.nominated_node_name for info in members}
    kept = (snapshot.nodes.find(name) for name in names if name)
    return any(
        snapshot.gangs.priority_of(booking.pod) < priority and victims.is_being_preempted(booking.pod)
        for node in kept
        if node is not None
        for booking in node.ledger.bookings.values()
    )
