"""Places: the counts of domains, and how those of a domain follow from the ones below it.

Counts "with leader" are the pods and slices that still fit once the leader of the group is in the domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from drachma.queueing.topology.shape import Shape
from drachma.queueing.topology.tree import Domain

MOST: Final = 2**31 - 1
"""Largest count, for pods that request nothing."""


class Place(msgspec.Struct, eq=False, gc=False):
    """Counts of one domain."""

    domain: Domain
    children: Sequence[Place] = ()
    """Places of the domains below, in the order of their values."""
    pods: int = 0
    slices: int = 0
    leaders: int = 0
    pods_with_leader: int = 0
    slices_with_leader: int = 0
    score: int = 0
    """Weight of preferred node affinity that its nodes match."""
    reason: str = ""
    """Reason why no pod fits into a leaf, else empty."""
    ordered: tuple[object, list[Place]] | None = None
    """Children in the order of the last search, with its rules; None after a change of their counts."""

    def copy(self) -> Place:
        """Return a copy of the place and of all places below it."""
        return Place(
            domain=self.domain,
            children=[child.copy() for child in self.children],
            pods=self.pods,
            slices=self.slices,
            leaders=self.leaders,
            pods_with_leader=self.pods_with_leader,
            slices_with_leader=self.slices_with_leader,
            score=self.score,
            reason=self.reason,
        )

    def clear(self) -> None:
        """Set all counts to 0, also below."""
        self.pods = self.slices = 0
        self.clear_leader()
        for child in self.children:
            child.clear()

    def clear_leader(self) -> None:
        """Set all counts with a leader to 0, also below."""
        self.leaders = self.pods_with_leader = self.slices_with_leader = 0
        for child in self.children:
            child.clear_leader()


def roll_up(place: Place, shape: Shape, inner_sizes: Mapping[int, int], *, has_leader: bool) -> None:
    """Compute the counts of a place from those of its children."""
    level = place.domain.level
    if place.children:
        place.ordered = None
        _add_children(place, inner_sizes.get(level + 1), has_leader=has_leader)
    if level == shape.slice_level:
        place.slices = place.pods // shape.slice_size
        place.slices_with_leader = place.pods_with_leader // shape.slice_size


def roll_up_plainly(place: Place, shape: Shape, *, has_scores: bool) -> None:
    """Like roll_up(), for fresh counts without a leader and without inner slices."""
    children, level = place.children, place.domain.level
    place.ordered = None
    place.pods = place.pods_with_leader = sum([child.pods for child in children])
    if level == shape.slice_level:
        place.slices = place.pods // shape.slice_size
    elif level < shape.slice_level:
        place.slices = sum([child.slices for child in children])
    place.slices_with_leader = place.slices
    if has_scores:
        place.score = sum([child.score for child in children])


def roll_up_all(place: Place, shape: Shape, inner_sizes: Mapping[int, int], *, has_leader: bool) -> None:
    """Compute the counts of a place and of all places below it from those of the leaves."""
    for child in place.children:
        roll_up_all(child, shape, inner_sizes, has_leader=has_leader)
    roll_up(place, shape, inner_sizes, has_leader=has_leader)


def _add_children(place: Place, inner_size: int | None, *, has_leader: bool) -> None:
    pods = slices = leaders = score = 0
    least_pods = least_slices = MOST
    can_lead = False
    for child in place.children:
        child_pods, child_pods_with_leader = child.pods, child.pods_with_leader
        if inner_size is not None:
            # Only whole inner slices count.
            child_pods -= child_pods % inner_size
            child_pods_with_leader -= child_pods_with_leader % inner_size
        pods += child_pods
        slices += child.slices
        if not has_leader or child.leaders:
            can_lead = True
            least_pods = min(least_pods, child_pods - child_pods_with_leader)
            least_slices = min(least_slices, child.slices - child.slices_with_leader)
        leaders = max(leaders, child.leaders)
        score += child.score
    place.pods, place.slices, place.leaders, place.score = pods, slices, leaders, score
    place.pods_with_leader = pods - least_pods if can_lead else 0
    place.slices_with_leader = slices - least_slices if can_lead else 0
