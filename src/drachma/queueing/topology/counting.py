"""Counting: how many pods, slices and leaders fit into every domain of a tree, from the leaves up.

A search works on :class:`Place` objects, one for each domain, which it may change. Counts "with leader" are the pods
and slices that still fit once the leader of the group is in the domain.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from drachma.api import pod
from drachma.claims import nodeaffinity, taints
from drachma.queueing.amounts import Requests
from drachma.queueing.topology.shape import Shape
from drachma.queueing.topology.tree import PODS, Amounts, Domain, Leaf, Tree
from drachma.values import nodes, quotation

_MOST: Final = 2**31 - 1
"""Largest count, for pods that request nothing."""


class Place:
    """Counts of one domain."""

    __slots__ = ("children", "domain", "leaders", "pods", "pods_with_leader", "score", "slices", "slices_with_leader")

    def __init__(self, domain: Domain, children: list[Place]) -> None:
        self.domain: Final = domain
        self.children: Final = children
        self.pods = self.slices = self.leaders = 0
        self.pods_with_leader = self.slices_with_leader = 0
        self.score = 0
        """Weight of preferred node affinity that its nodes match."""

    def copy(self) -> Place:
        """Return a copy of the place and of all places below it."""
        copied = Place(self.domain, [child.copy() for child in self.children])
        copied.pods, copied.slices, copied.leaders = self.pods, self.slices, self.leaders
        copied.pods_with_leader, copied.slices_with_leader = self.pods_with_leader, self.slices_with_leader
        copied.score = self.score
        return copied

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


class Exclusions:
    """Leaves that no pod fits into, by reason."""

    def __init__(self) -> None:
        self.total = 0
        self._reasons: Final[collections.Counter[str]] = collections.Counter()

    def add(self, reason: str) -> None:
        """Count a leaf."""
        self._reasons[reason] += 1

    def text(self) -> str:
        """Return the end of a message, empty if nothing was excluded."""
        if not self._reasons:
            return ""
        reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(self._reasons.items()))
        return f". Total nodes: {self.total}; excluded: {reasons}"


class Pods(NamedTuple):
    """Pods to be counted, and the conditions of their placement."""

    per_pod: Requests
    leader: Requests | None
    node_selector: Mapping[str, str]
    affinity: pod.NodeAffinity | None
    tolerations: tuple[pod.Toleration, ...]
    assumed: Mapping[tuple[str, ...], Mapping[str, int]]
    """Usage of earlier pod sets of the same workload, by leaf."""
    within: str = ""
    """Identity of the domain that a replacement must be in."""
    ignores_usage: bool = False
    """True to count as if no workload were admitted."""
    respects_preferences: bool = False
    """True to weigh preferred node affinity."""


def count(tree: Tree, pods: Pods, shape: Shape, exclusions: Exclusions) -> list[dict[tuple[str, ...], Place]]:
    """Return the places of each level by their values, counted."""
    places: list[dict[tuple[str, ...], Place]] = [{} for _ in tree.levels]
    leaf_counter = _LeafCounter(tree, pods, exclusions)
    for level in range(len(tree.levels) - 1, -1, -1):
        below = places[level + 1] if level + 1 < len(places) else {}
        for values, domain in tree.domains[level].items():
            place = Place(domain, [below[child.values] for child in domain.children])
            places[level][values] = place
            if isinstance(domain, Leaf):
                leaf_counter.count(place, domain)
            roll_up(place, shape, shape.inner_sizes, has_leader=pods.leader is not None)
    return places


def roll_up(place: Place, shape: Shape, inner_sizes: Mapping[int, int], *, has_leader: bool) -> None:
    """Compute the counts of a place from those of its children."""
    level = place.domain.level
    if place.children:
        _add_children(place, inner_sizes.get(level + 1), has_leader=has_leader)
    if level == shape.slice_level:
        place.slices = place.pods // shape.slice_size
        place.slices_with_leader = place.pods_with_leader // shape.slice_size


def roll_up_all(place: Place, shape: Shape, inner_sizes: Mapping[int, int], *, has_leader: bool) -> None:
    """Compute the counts of a place and of all places below it from those of the leaves."""
    for child in place.children:
        roll_up_all(child, shape, inner_sizes, has_leader=has_leader)
    roll_up(place, shape, inner_sizes, has_leader=has_leader)


def _add_children(place: Place, inner_size: int | None, *, has_leader: bool) -> None:
    pods = slices = leaders = score = 0
    least_pods = least_slices = _MOST
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


class _LeafCounter:
    """Counts pods in single leaves."""

    def __init__(self, tree: Tree, pods: Pods, exclusions: Exclusions) -> None:
        self._pods: Final = pods
        self._per_pod: Final = _with_pod(pods.per_pod)
        self._leader: Final = None if pods.leader is None else _with_pod(pods.leader)
        self._exclusions: Final = exclusions
        self._checks_nodes: Final = tree.has_hostnames
        self._matcher: Final = _required_matcher(pods)
        self._preferences: Final = _preferences(pods) if pods.respects_preferences else ()

    def count(self, place: Place, leaf: Leaf) -> None:
        """Count the pods and the leader that fit into a leaf."""
        self._exclusions.total += 1
        if self._checks_nodes and not self._is_suitable(place, leaf):
            return
        if not leaf.is_within(self._pods.within):
            self._exclusions.add("topologyDomain")
            return
        room = self._room(leaf)
        place.pods, limit = _times(self._per_pod, room)
        if not place.pods and limit:
            self._exclusions.add(f"resource {quotation.quote(limit)}")
        if self._leader is not None and _times(self._leader, room)[0]:
            place.leaders = 1
            for name, amount in self._leader.items():
                room[name] = room.get(name, 0) - amount
        place.pods_with_leader = _times(self._per_pod, room)[0]

    def _is_suitable(self, place: Place, leaf: Leaf) -> bool:
        node = leaf.node
        assert node is not None, "a leaf with a hostname is a node"
        taint = taints.first_untolerated(node.spec.taints, self._pods.tolerations)
        if taint is not None:
            value = f"={taint.value}" if taint.value else ""
            self._exclusions.add(f"taint {quotation.quote(f'{taint.key}{value}:{taint.effect}')}")
            return False
        labels = node.metadata.labels
        if any(labels.get(key) != value for key, value in self._pods.node_selector.items()):
            self._exclusions.add("nodeSelector")
            return False
        if self._matcher is not None and not self._matcher.matches(labels, node.metadata.name):
            self._exclusions.add("affinity")
            return False
        place.score = sum(
            weight for weight, matcher in self._preferences if matcher.matches(labels, node.metadata.name)
        )
        return True

    def _room(self, leaf: Leaf) -> Amounts:
        room = dict(leaf.capacity)
        usages = [self._pods.assumed.get(leaf.key, {})]
        if not self._pods.ignores_usage:
            usages.append(leaf.usage)
        for usage in usages:
            for name, amount in usage.items():
                room[name] = room.get(name, 0) - amount
        return room


def _with_pod(per_pod: Requests) -> Amounts:
    return {**per_pod, PODS: per_pod.get(PODS, 0) + 1}


def _times(requests: Requests, room: Mapping[str, int]) -> tuple[int, str]:
    """Return how often requests fit, and the resource that limits them; of several the first by name."""
    counts = [
        (max(0, min(room.get(name, 0) // amount, _MOST)) if amount else _MOST, name)
        for name, amount in requests.items()
    ]
    return min(counts)


def _required_matcher(pods: Pods) -> nodes.NodeSelectorMatcher | None:
    required = None if pods.affinity is None else pods.affinity.required_during_scheduling_ignored_during_execution
    if required is None:
        return None
    return nodes.NodeSelectorMatcher.compile(nodeaffinity.terms(required.node_selector_terms))


def _preferences(pods: Pods) -> tuple[tuple[int, nodes.NodeSelectorMatcher], ...]:
    preferred: Iterable[pod.PreferredSchedulingTerm] = (
        () if pods.affinity is None else pods.affinity.preferred_during_scheduling_ignored_during_execution
    )
    return tuple(
        (each.weight, nodes.NodeSelectorMatcher.compile(nodeaffinity.terms((each.preference,))))
        for each in preferred
        if each.weight
    )
