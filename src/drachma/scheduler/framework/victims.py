"""Victims: units that preemption evicts as a whole.

Most victims are single pods. The pods of a PodGroup whose ``disruptionMode`` is ``all`` are one victim: they are
evicted together, on all their nodes. A victim that belongs to a group has the priority of the group.

:func:`spare` is common to preemption for a pod and for a gang. All possible victims are removed first, and come back
one by one unless they are in the way.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from drachma.accounting import ledger
from drachma.api import pod
from drachma.bounds import effort
from drachma.claims import conditions, wellknown
from drachma.scheduler.snapshot import Snapshot, assignment, nodeinfo

_MOST_COMPARED: Final = 8
"""Number of candidates whose sets are all compared."""

_LOOK_EFFORT: Final = 2
_MOVE_EFFORT: Final = 15
"""Effort to look at a pod on a node, and to remove it from a snapshot or to put it back."""

_FAR_FUTURE: Final = datetime.max.replace(tzinfo=UTC)


class Victim(NamedTuple):
    """Pods that are evicted together, usually one."""

    priority: int
    is_of_group: bool
    places: tuple[tuple[str, ledger.Booking], ...]
    """Pods with their nodes."""

    @property
    def pods(self) -> Iterator[pod.Pod]:
        return (booking.pod for _, booking in self.places)

    def is_on(self, nodes: Iterable[str]) -> bool:
        """Return True if a pod of the victim is on one of these nodes."""
        return any(node in nodes for node, _ in self.places)

    def leave(self, snapshot: Snapshot) -> None:
        """Remove the pods from a snapshot."""
        effort.spend(_MOVE_EFFORT * len(self.places))
        for victim in self.pods:
            snapshot.vacate(victim)

    def return_to(self, snapshot: Snapshot) -> None:
        """Put the pods back on their nodes."""
        effort.spend(_MOVE_EFFORT * len(self.places))
        for node, booking in self.places:
            snapshot.reoccupy(assignment.Assignment(booking.pod, node, booking.demand))


class Spared(NamedTuple):
    """Result of :func:`spare`."""

    victims: tuple[pod.Pod, ...]
    """Pods to evict, most important first."""
    violations: int
    """Number of evictions beyond disruption budgets."""


def candidates_below(priority: int, snapshot: Snapshot, nodes: Iterable[nodeinfo.NodeInfo]) -> list[Victim]:
    """Return the victims below a priority with pods on some nodes. Their pods on other nodes are included."""
    candidates: dict[Hashable, Victim] = {}
    for info in nodes:
        effort.spend(_LOOK_EFFORT * len(info.ledger.bookings))
        for uid, booking in info.ledger.bookings.items():
            own = snapshot.gangs.priority_of(booking.pod)
            if own >= priority:
                continue
            group = snapshot.gangs.disrupted_with(booking.pod)
            if group is None:
                is_of_group = snapshot.gangs.group_of(booking.pod) is not None
                candidates[uid] = Victim(own, is_of_group, ((info.name, booking),))
            elif group.key not in candidates:
                candidates[group.key] = Victim(own, is_of_group=True, places=tuple(_places(group.members, snapshot)))
    return list(candidates.values())


def _places(uids: Iterable[str], snapshot: Snapshot) -> Iterator[tuple[str, ledger.Booking]]:
    for uid in uids:
        info = snapshot.nodes.find(snapshot.nodes.node_of(uid) or "")
        if info is not None:
            yield info.name, info.ledger.bookings[uid]


def spare(
    candidates: Iterable[Victim],
    snapshot: Snapshot,
    *,
    fits: Callable[[], bool],
    is_in_the_way: Callable[[Victim], bool] = lambda victim: True,
) -> Spared:
    """Return the victims that must be evicted. The others are back in the snapshot afterwards.

    As many victims as possible come back: those with disruption budgets first, and then by importance. ``fits`` returns
    True if the preemptor still fits. It is not asked for victims that cannot be in the way.
    """
    ranked = sorted(candidates, key=importance)
    beyond = snapshot.budgets.violating(victim for each in ranked for victim in each.pods)
    victims: list[Victim] = []
    for each in sorted(ranked, key=lambda victim: not _violations(victim, beyond)):
        each.return_to(snapshot)
        if is_in_the_way(each) and not fits():
            each.leave(snapshot)
            victims.append(each)
    victims.sort(key=importance)
    return Spared(
        tuple(victim for each in victims for victim in each.pods),
        sum(_violations(each, beyond) for each in victims),
    )


def choose(
    candidates: Sequence[Victim], snapshot: Snapshot, *, fits_without: Callable[[Sequence[Victim]], bool]
) -> Spared | None:
    """Return the victims whose devices a preemptor needs, or None if no set of them helps within the budgets.

    The least important victims are evicted, and of these the fewest: sets are compared by the highest priority, then by
    the number of pods, then by the sum of priorities. Up to :data:`_MOST_COMPARED` candidates that is exact. With more,
    victims are spared one by one, so that each of the rest is needed, but another set may be smaller. If budgets forbid
    to evict all of them, two sets within the budgets are tried: the least important victims, and those with the most
    devices.

    ``fits_without`` returns True if the preemptor fits after an eviction. Unlike :func:`spare`, a disruption budget is
    never exceeded.
    """
    allowed = [each for each in candidates if not _exceeds((each,), snapshot)]
    if len(allowed) <= _MOST_COMPARED:
        sets = (
            victim_set for size in range(1, len(allowed) + 1) for victim_set in itertools.combinations(allowed, size)
        )
        for victim_set in sorted(sets, key=_set_rank):
            if not _exceeds(victim_set, snapshot) and fits_without(victim_set):
                return Spared(_pods_by_importance(victim_set), 0)
        return None
    if not fits_without(allowed):
        return None
    least_important = sorted(allowed, key=importance, reverse=True)
    orders = (least_important, sorted(least_important, key=lambda each: -_freed_devices(each, snapshot)))
    victim_sets = (_evictable_victims(order, snapshot) for order in orders)
    chosen_victims = next(filter(fits_without, victim_sets), None)
    if chosen_victims is None:
        return None
    for each in sorted(chosen_victims, key=importance):
        smaller = [other for other in chosen_victims if other is not each]
        if smaller and fits_without(smaller):
            chosen_victims = smaller
    return Spared(_pods_by_importance(chosen_victims), 0)


def _evictable_victims(candidates: Iterable[Victim], snapshot: Snapshot) -> list[Victim]:
    """Return as many candidates as budgets allow to evict together, in their order."""
    within_budget: list[Victim] = []
    for each in candidates:
        if not _exceeds((*within_budget, each), snapshot):
            within_budget.append(each)
    return within_budget


def _freed_devices(victim: Victim, snapshot: Snapshot) -> int:
    allocations = (claim.status.allocation for claim in snapshot.freed_claims(victim.pods))
    return sum(len(each.devices.results) for each in allocations if each is not None)


def _exceeds(victim_set: Iterable[Victim], snapshot: Snapshot) -> bool:
    return bool(snapshot.budgets.violating(victim for each in victim_set for victim in each.pods))


def _set_rank(victim_set: Sequence[Victim]) -> tuple[int, int, int, list[float]]:
    priorities = [each.priority for each in victim_set for _ in each.places]
    starts = sorted(-start_time(victim).timestamp() for each in victim_set for victim in each.pods)
    return max(priorities), len(priorities), sum(priorities), starts


def _pods_by_importance(victim_set: Iterable[Victim]) -> tuple[pod.Pod, ...]:
    return tuple(victim for each in sorted(victim_set, key=importance) for victim in each.pods)


def importance(victim: Victim) -> tuple[int, bool, int, datetime]:
    """Return the sort key of victims, most important first: by priority, group, number of pods, and age."""
    return -victim.priority, not victim.is_of_group, -len(victim.places), min(map(start_time, victim.pods))


def start_time(victim: pod.Pod) -> datetime:
    """Return the start time of a pod. A pod that does not run yet is younger than any other."""
    return victim.status.start_time or _FAR_FUTURE


def is_being_preempted(evicted_pod: pod.Pod) -> bool:
    """Return True if a pod is being deleted because a scheduler evicted it."""
    if evicted_pod.metadata.deletion_timestamp is None:
        return False
    target = conditions.find(evicted_pod.status.conditions, wellknown.DISRUPTION_TARGET)
    return target is not None and (target.status, target.reason) == ("True", wellknown.PREEMPTION_BY_SCHEDULER)


def _violations(victim: Victim, beyond: set[str]) -> int:
    return sum(each.metadata.uid in beyond for each in victim.pods)
