"""Counting: how many pods, slices and leaders fit into every domain of a tree, from the leaves up.

:class:`Counts` keeps the places of a kind of pods for the next search, and counts again only in leaves whose room has
changed. A search reads the counts and changes none.
"""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterable
from typing import Final

from drachma.queueing.topology import places
from drachma.queueing.topology.leafcounting import Assumed, LeafCounter, Pods
from drachma.queueing.topology.places import Place
from drachma.queueing.topology.shape import Shape
from drachma.queueing.topology.tree import Leaf, Tree

_MOST_PLACES: Final = 100_000
"""Most places of leaves that are kept for later searches in a tree."""
_LEAST_KINDS: Final = 4
"""Number of kinds of pods whose places are kept in any case."""


class CountedPlaces:
    """Places of all domains of a tree for one kind of pods."""

    def __init__(self, tree: Tree, pods: Pods, shape: Shape, assumed: Assumed) -> None:
        """Count everywhere. ``assumed`` is usage by leaf that counts until the next refresh."""
        self._tree: Final = tree
        self._shape: Final = shape
        self._has_leader: Final = pods.leader is not None
        self._has_scores: Final = pods.respects_preferences
        is_in_leaves = shape.slice_level == len(tree.levels) - 1
        self._counter: Final = LeafCounter(tree, pods, slice_size=shape.slice_size if is_in_leaves else None)
        self.follows_usage: Final = not pods.ignores_usage
        self.ordered: Final[dict[tuple[object, ...], list[Place]]] = {}
        """Places of levels in the orders of the last searches, while counts do not change."""
        self._stale = _leaves_with(tree, assumed)
        """Leaves whose room has changed since they were counted."""
        leaves = tree.leaves_by_rank()
        lowest = [
            Place(leaf, (), *count) for leaf, count in zip(leaves, self._counter.count(leaves, assumed), strict=True)
        ]
        self.levels: Final = [lowest]
        """Places of each level in the order of their values."""
        for domains in reversed(tree.domains_by_rank()):
            below = self.levels[0]
            above = [Place(domain, [below[child.rank] for child in domain.children]) for domain in domains]
            self._roll_up(above)
            self.levels.insert(0, above)

    def mark(self, leaves: Iterable[Leaf]) -> None:
        """Count again in leaves before the next search."""
        self._stale.update(leaves)

    def refresh(self, assumed: Assumed) -> None:
        """Count again where room has changed. ``assumed`` is usage by leaf that counts until the next refresh."""
        added = _leaves_with(self._tree, assumed)
        stale = list(self._stale | added)
        if not stale:
            return
        lowest = self.levels[-1]
        for leaf, count in zip(stale, self._counter.count(stale, assumed), strict=True):
            place = lowest[leaf.rank]
            (
                place.pods,
                place.slices,
                place.leaders,
                place.pods_with_leader,
                place.slices_with_leader,
                place.score,
                place.reason,
            ) = count
        parents = {leaf.parent for leaf in stale if leaf.parent is not None}
        while parents:
            self._roll_up([self.levels[domain.level][domain.rank] for domain in parents])
            parents = {domain.parent for domain in parents if domain.parent is not None}
        self.ordered.clear()
        self._stale = added

    def _roll_up(self, stale: Iterable[Place]) -> None:
        """Compute the counts of places from those of their children."""
        if self._has_leader or self._shape.inner_sizes:
            for place in stale:
                places.roll_up(place, self._shape, self._shape.inner_sizes, has_leader=self._has_leader)
        else:
            for place in stale:
                places.roll_up_plainly(place, self._shape, has_scores=self._has_scores)

    def exclusions(self) -> str:
        """Return the end of a message about leaves that no pod fits into, empty if there are none."""
        counts = collections.Counter(place.reason for place in self.levels[-1])
        del counts[""]
        if not counts:
            return ""
        reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(counts.items()))
        return f". Total nodes: {len(self._tree.leaves)}; excluded: {reasons}"


class Counts:
    """Counted places of a tree, for the kinds of pods that were searched last."""

    def __init__(self, tree: Tree) -> None:
        self._tree: Final = tree
        self._counted: Final[dict[tuple[object, ...], CountedPlaces]] = {}
        """Places by kind of pods, the least recently used first."""
        tree.subscribe(self._mark)

    def get(self, pods: Pods, shape: Shape, assumed: Assumed) -> CountedPlaces:
        """Return the places for pods. A search must leave the counts as they are."""
        if pods.within or pods.devices is not None:
            return CountedPlaces(self._tree, pods, shape, assumed)
        key = (pods.identity, shape.slice_level, shape.slice_size, tuple(shape.inner_sizes.items()))
        places_of_kind = self._counted.pop(key, None)
        if places_of_kind is None:
            places_of_kind = CountedPlaces(self._tree, pods, shape, assumed)
        else:
            places_of_kind.refresh(assumed)
        self._counted[key] = places_of_kind
        if len(self._counted) > max(_LEAST_KINDS, _MOST_PLACES // max(1, len(self._tree.leaves))):
            del self._counted[next(iter(self._counted))]
        return places_of_kind

    def _mark(self, leaves: Collection[Leaf], is_usage: bool) -> None:  # noqa: FBT001 -- a listener of the tree
        for counted in self._counted.values():
            if counted.follows_usage or not is_usage:
                counted.mark(leaves)


def _leaves_with(tree: Tree, assumed: Assumed) -> set[Leaf]:
    """Return the leaves that have assumed usage."""
    return {tree.leaves[key] for key in assumed if key in tree.leaves}
