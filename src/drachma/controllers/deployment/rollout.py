"""How large each ReplicaSet of a deployment is to be next. Pure: numbers in, numbers out.

A deployment never has more pods than wanted plus its surge, and never fewer that are available than wanted less those
that may be missing. A rollout is a row of such steps: the new set grows as far as the surge lets it, old ones shrink as
far as availability lets them. When the wanted number changes in between, all sets share in the change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from drachma.api import deployment
from drachma.controllers.workload import shares

ROLLING: Final = "RollingUpdate"


class Size(NamedTuple):
    """A ReplicaSet: how many pods it is to have, and how many of them are available.

    ``most`` is what the deployment allowed in all when the set was last scaled, from which proportions are reckoned; 0
    where that is not known.
    """

    name: str
    replicas: int
    available: int
    most: int = 0


class Bounds(NamedTuple):
    """What a deployment wants: pods, how many too many there may be, and how many may be missing."""

    replicas: int
    surge: int
    unavailable: int

    @property
    def most(self) -> int:
        return self.replicas + self.surge if self.replicas else 0

    @property
    def least_available(self) -> int:
        return self.replicas - self.unavailable


Sizes = dict[str, int]
"""How large sets are to be, by name; those that are not named stay as they are."""


def bounds(spec: deployment.DeploymentSpec) -> Bounds:
    """What a spec wants. Shares of surge are rounded up, those of what may be missing down; both cannot be nothing."""
    replicas = 1 if spec.replicas is None else spec.replicas
    rolling = spec.strategy.rolling_update
    if spec.strategy.type != ROLLING or rolling is None:
        return Bounds(replicas, 0, 0)
    surge = shares.rounded_up(rolling.max_surge, replicas)
    unavailable = shares.rounded_down(rolling.max_unavailable, replicas)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Bounds(replicas, surge, min(unavailable, replicas))


def grow(wanted: Bounds, new: Size, old: Sequence[Size]) -> int:
    """How large the new set may be now, in a rolling update."""
    if new.replicas >= wanted.replicas:
        return wanted.replicas
    room = wanted.replicas + wanted.surge - new.replicas - sum(each.replicas for each in old)
    return new.replicas + max(min(room, wanted.replicas - new.replicas), 0)


def shrink(wanted: Bounds, new: Size, old: Sequence[Size]) -> Sizes:
    """How large old sets are to be, in a rolling update; the oldest is first. Pods that are not available go first."""
    total = new.replicas + sum(each.replicas for each in old)
    missing_of_new = new.replicas - new.available
    room = total - wanted.least_available - missing_of_new
    if room <= 0:
        return {}
    sizes: Sizes = {}
    for each in old:
        idle = min(room, max(each.replicas - each.available, 0))
        if idle:
            sizes[each.name] = each.replicas - idle
            room -= idle
    spare = new.available + sum(each.available for each in old) - wanted.least_available
    for each in old:
        if spare <= 0:
            break
        size = sizes.get(each.name, each.replicas)
        step = min(size, spare)
        if step:
            sizes[each.name] = size - step
            spare -= step
    return sizes


def share_out(wanted: Bounds, sets: Sequence[Size]) -> Sizes:
    """The sizes after the wanted number changed in the middle of a rollout: every set gets its part of the change."""
    active = [each for each in sets if each.replicas]
    total = sum(each.replicas for each in active)
    change = wanted.most - total
    if not change:
        return {}
    # The larger sets are first to take what is over; growing prefers the newer, which comes last.
    newest_first = list(reversed(active))
    ordered = sorted(newest_first if change > 0 else active, key=lambda each: -each.replicas)
    sizes: Sizes = {}
    given = 0
    for each in ordered:
        base = each.most or total
        part = round(each.replicas * wanted.most / base) - each.replicas if base else 0
        part = min(part, change - given) if change > 0 else max(part, change - given)
        if (part > 0) != (change > 0):
            part = 0
        sizes[each.name] = each.replicas + part
        given += part
    first = ordered[0].name
    sizes[first] = max(sizes[first] + change - given, 0)
    return sizes


def is_complete(wanted: Bounds, *, updated: int, total: int, available: int) -> bool:
    """Whether all pods are of the new template and available, and none of an old one are left."""
    return updated == wanted.replicas == total == available
