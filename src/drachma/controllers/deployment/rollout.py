"""Next sizes of the ReplicaSets of a deployment. Pure: numbers in, numbers out.

A deployment never has more pods than desired plus its surge, and never fewer available pods than desired minus those
that may be unavailable. A rollout is a series of such steps: the new set grows as far as the surge allows, old sets
shrink as far as availability allows. If the desired number changes in between, all sets share in the change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from drachma.api import deployment
from drachma.controllers.workload import shares

ROLLING: Final = "RollingUpdate"


class Size(NamedTuple):
    """A ReplicaSet: its size, and the number of its available pods.

    ``most`` is the number of pods that the deployment allowed in all when the set was last scaled, the base of
    proportions; 0 if unknown.
    """

    name: str
    replicas: int
    available: int
    most: int = 0


class Bounds(NamedTuple):
    """Replicas of a deployment, its surge, and the number of pods that may be unavailable."""

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
"""New sizes of sets by name; other sets keep theirs."""


def bounds(spec: deployment.DeploymentSpec) -> Bounds:
    """Return the bounds of a spec. A surge in percent is rounded up, unavailable pods in percent down; both cannot be
    zero.
    """
    replicas = 1 if spec.replicas is None else spec.replicas
    rolling = spec.strategy.rolling_update
    if spec.strategy.type != ROLLING or rolling is None:
        return Bounds(replicas, 0, 0)
    surge = shares.rounded_up(rolling.max_surge, replicas)
    unavailable = shares.rounded_down(rolling.max_unavailable, replicas)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Bounds(replicas, surge, min(unavailable, replicas))


def grow(bounds: Bounds, new: Size, old: Sequence[Size]) -> int:
    """Return the size of the new set in the next step of a rolling update."""
    if new.replicas >= bounds.replicas:
        return bounds.replicas
    room = bounds.replicas + bounds.surge - new.replicas - sum(each.replicas for each in old)
    return new.replicas + max(min(room, bounds.replicas - new.replicas), 0)


def shrink(bounds: Bounds, new: Size, old: Sequence[Size]) -> Sizes:
    """Return the sizes of old sets in the next step of a rolling update, oldest first. Unavailable pods go first."""
    total = new.replicas + sum(each.replicas for each in old)
    missing_of_new = new.replicas - new.available
    room = total - bounds.least_available - missing_of_new
    if room <= 0:
        return {}
    sizes: Sizes = {}
    for each in old:
        idle = min(room, max(each.replicas - each.available, 0))
        if idle:
            sizes[each.name] = each.replicas - idle
            room -= idle
    spare = new.available + sum(each.available for each in old) - bounds.least_available
    for each in old:
        if spare <= 0:
            break
        size = sizes.get(each.name, each.replicas)
        step = min(size, spare)
        if step:
            sizes[each.name] = size - step
            spare -= step
    return sizes


def share_out(bounds: Bounds, sets: Sequence[Size]) -> Sizes:
    """Return the sizes after the number of replicas changed during a rollout: each set gets its share."""
    active = [each for each in sets if each.replicas]
    total = sum(each.replicas for each in active)
    change = bounds.most - total
    if not change:
        return {}
    # Larger sets get the remainder first; when growing, of equal sets the newest, which comes last.
    newest_first = list(reversed(active))
    ordered = sorted(newest_first if change > 0 else active, key=lambda each: -each.replicas)
    sizes: Sizes = {}
    distributed = 0
    for each in ordered:
        base = each.most or total
        part = round(each.replicas * bounds.most / base) - each.replicas if base else 0
        part = min(part, change - distributed) if change > 0 else max(part, change - distributed)
        if (part > 0) != (change > 0):
            part = 0
        sizes[each.name] = each.replicas + part
        distributed += part
    first = ordered[0].name
    sizes[first] = max(sizes[first] + change - distributed, 0)
    return sizes


def is_complete(bounds: Bounds, *, updated: int, total: int, available: int) -> bool:
    """Return True if all pods have the new template and are available, and no old pod is left."""
    return updated == bounds.replicas == total == available
