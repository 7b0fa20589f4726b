"""Victims: what preemption can take from nodes, each a unit that goes or stays as a whole.

Most are pods. The pods of a PodGroup whose ``disruptionMode`` is ``all`` are one victim, wherever they are: who evicts
one of them evicts them all. A victim has the priority of its group where it belongs to one.

:func:`spare` is the part that evicting for one pod and evicting for a gang have in common: with everybody gone who may
go, those come back one by one who are not in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from drachma.accounting import ledger
from drachma.api import pod
from drachma.claims import wellknown
from drachma.scheduler.snapshot import Snapshot, assignment, nodeinfo

_FAR_FUTURE: Final = datetime.max.replace(tzinfo=UTC)


class Victim(NamedTuple):
    """Pods that go together, most often one."""

    priority: int
    is_of_group: bool
    places: tuple[tuple[str, ledger.Booking], ...]
    """The pods, each with its node."""

    @property
    def pods(self) -> Iterator[pod.Pod]:
        return (booking.pod for _, booking in self.places)

    def is_on(self, nodes: Iterable[str]) -> bool:
        """Whether any of its pods is on one of these nodes."""
        return any(node in nodes for node, _ in self.places)

    def leave(self, snapshot: Snapshot) -> None:
        """Count its pods nowhere."""
        for victim in self.pods:
            snapshot.remove_pod(victim.metadata.uid)

    def return_to(self, snapshot: Snapshot) -> None:
        """Count its pods where they were."""
        for node, booking in self.places:
            snapshot.bind(assignment.Assignment(booking.pod, node, booking.demand))


class Spared(NamedTuple):
    """What is left when everybody has come back who is not in the way."""

    victims: tuple[pod.Pod, ...]
    """Who has to go, the most important first."""
    violations: int
    """How many of them go beyond what a disruption budget allows."""


def below(priority: int, snapshot: Snapshot, nodes: Iterable[nodeinfo.NodeInfo]) -> list[Victim]:
    """The victims with pods on some nodes that are less important than a priority; pods elsewhere go with them."""
    lesser: dict[Hashable, Victim] = {}
    for info in nodes:
        for uid, booking in info.ledger.bookings.items():
            own = snapshot.gangs.priority_of(booking.pod)
            if own >= priority:
                continue
            group = snapshot.gangs.disrupted_with(booking.pod)
            if group is None:
                is_of_group = snapshot.gangs.group_of(booking.pod) is not None
                lesser[uid] = Victim(own, is_of_group, ((info.name, booking),))
            elif group.key not in lesser:
                lesser[group.key] = Victim(own, is_of_group=True, places=tuple(_places(group.members, snapshot)))
    return list(lesser.values())


def _places(uids: Iterable[str], snapshot: Snapshot) -> Iterator[tuple[str, ledger.Booking]]:
    for uid in uids:
        info = snapshot.nodes.find(snapshot.nodes.node_of(uid) or "")
        if info is not None:
            yield info.name, info.ledger.bookings[uid]


def spare(
    lesser: Iterable[Victim],
    snapshot: Snapshot,
    *,
    fits: Callable[[], bool],
    is_in_the_way: Callable[[Victim], bool] = lambda victim: True,
) -> Spared:
    """Who of those who left a snapshot has to stay away; the others are back in it afterwards.

    As many as possible come back: first those that disruption budgets are about, and of both sorts the most important
    first. ``fits`` says whether whoever they left for still fits; it is not asked about those who surely are not in
    the way.
    """
    ranked = sorted(lesser, key=importance)
    beyond = snapshot.budgets.violating(victim for each in ranked for victim in each.pods)
    gone: list[Victim] = []
    for each in sorted(ranked, key=lambda victim: not _violations(victim, beyond)):
        each.return_to(snapshot)
        if is_in_the_way(each) and not fits():
            each.leave(snapshot)
            gone.append(each)
    gone.sort(key=importance)
    return Spared(
        tuple(victim for each in gone for victim in each.pods),
        sum(_violations(each, beyond) for each in gone),
    )


def importance(victim: Victim) -> tuple[int, bool, int, datetime]:
    """Victims in order, the most important first: by priority, in groups, of many pods, and old."""
    return -victim.priority, not victim.is_of_group, -len(victim.places), min(map(started, victim.pods))


def started(victim: pod.Pod) -> datetime:
    """Since when a pod runs; one that does not yet is younger than any."""
    return victim.status.start_time or _FAR_FUTURE


def is_being_preempted(of: pod.Pod) -> bool:
    """Whether a pod is on its way out because a scheduler evicted it."""
    return of.metadata.deletion_timestamp is not None and any(
        condition.type == wellknown.DISRUPTION_TARGET
        and condition.status == "True"
        and condition.reason == wellknown.PREEMPTION_BY_SCHEDULER
        for condition in of.status.conditions
    )


def _violations(of: Victim, beyond: set[str]) -> int:
    return sum(victim.metadata.uid in beyond for victim in of.pods)
