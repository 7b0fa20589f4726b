"""Counting: how many pods, slices and leaders fit into every domain of a tree, from the leaves up.

Counts are kept in :class:`Place` objects, one for each domain. Counts "with leader" are the pods and slices that still
fit once the leader of the group is in the domain. :class:`Counts` keeps the places of a kind of pods for the next
search, and counts again only in leaves whose room has changed.
"""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from drachma.api import node, pod
from drachma.claims import nodeaffinity, taints
from drachma.queueing.amounts import Requests
from drachma.queueing.topology.devicerooms import DeviceRoom, Expected
from drachma.queueing.topology.shape import Shape
from drachma.queueing.topology.tree import PODS, Amounts, Domain, Leaf, Tree
from drachma.values import nodes, quotation

_MOST: Final = 2**31 - 1
"""Largest count, for pods that request nothing."""
_MOST_PLACES: Final = 100_000
"""Most places of leaves that are kept for later searches in a tree."""
_LEAST_KINDS: Final = 4
"""Number of kinds of pods whose places are kept in any case."""
_NOTHING: Final[Mapping[str, int]] = {}


class Place:
    """Counts of one domain."""

    __slots__ = (
        "children", "domain", "leaders", "ordered", "pods", "pods_with_leader", "score", "slices", "slices_with_leader"
    )  # fmt: skip

    def __init__(self, domain: Domain, children: Sequence[Place]) -> None:
        self.domain: Final = domain
        self.children: Final = children
        self.pods = self.slices = self.leaders = 0
        self.pods_with_leader = self.slices_with_leader = 0
        self.score = 0
        """Weight of preferred node affinity that its nodes match."""
        self.ordered: tuple[object, list[Place]] | None = None
        """Children in the order of the last search, with its rules; None after a change of their counts."""

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


_NO_PLACES: Final[Sequence[Place]] = ()


class Pods(NamedTuple):
    """Pods to be counted, and the conditions of their placement."""

    per_pod: Requests
    leader: Requests | None
    node_selector: Mapping[str, str]
    affinity: pod.NodeAffinity | None
    tolerations: tuple[pod.Toleration, ...]
    within: str = ""
    """Identity of the domain that a replacement must be in."""
    ignores_usage: bool = False
    """True to count as if no workload were admitted."""
    respects_preferences: bool = False
    """True to weigh preferred node affinity."""
    devices: DeviceRoom | None = None
    """Room of nodes for the devices of the pods; None if their claims do not matter."""
    assumed_devices: Mapping[tuple[str, ...], Expected] = {}
    """Claims of earlier pod sets of the workload, by leaf."""

    @property
    def identity(self) -> tuple[object, ...]:
        """Value that is equal exactly for pods with the same counts."""
        return (
            tuple(sorted(self.per_pod.items())),
            None if self.leader is None else tuple(sorted(self.leader.items())),
            tuple(sorted(self.node_selector.items())),
            None if self.affinity is None else msgspec.json.encode(self.affinity),
            self.tolerations,
            self.ignores_usage,
            self.respects_preferences,
        )


class CountedPlaces:
    """Places of all domains of a tree for one kind of pods."""

    def __init__(self, tree: Tree, pods: Pods, shape: Shape) -> None:
        self._tree: Final = tree
        self._shape: Final = shape
        self._has_leader: Final = pods.leader is not None
        self._counter: Final = _LeafCounter(tree, pods)
        self.follows_usage: Final = not pods.ignores_usage
        self.levels: Final[list[dict[tuple[str, ...], Place]]] = [{} for _ in tree.levels]
        """Places of each level by their values."""
        below = self.levels[-1]
        below.update({values: Place(leaf, _NO_PLACES) for values, leaf in tree.domains[-1].items()})
        for level in range(len(tree.levels) - 2, -1, -1):
            places = self.levels[level]
            for values, domain in tree.domains[level].items():
                places[values] = Place(domain, [below[child.values] for child in domain.children])
            below = places
        self._reasons: Final[dict[Leaf, str]] = {}
        """Reasons of leaves that no pod fits into."""
        self._is_counted = False
        self._stale: set[Leaf] = set()
        """Leaves whose room has changed since they were counted."""
        self.ordered: Final[dict[tuple[object, ...], list[Place]]] = {}
        """Places of levels in the orders of the last searches, while counts do not change."""

    def mark(self, leaves: Iterable[Leaf]) -> None:
        """Count again in leaves before the next search."""
        self._stale.update(leaves)

    def refresh(self, assumed: Mapping[tuple[str, ...], Mapping[str, int]]) -> None:
        """Count again where room has changed. ``assumed`` is usage by leaf that counts until the next refresh."""
        leaves = self._tree.leaves
        added = {leaves[key] for key in assumed if key in leaves}
        if self._is_counted:
            lowest = self.levels[-1]
            stale: Iterable[Place] = [lowest[leaf.values] for leaf in self._stale | added]
            if not stale:
                return
        else:
            stale = self.levels[-1].values()
            self._is_counted = True
        self.ordered.clear()
        self._roll_up_parents(self._count(stale, assumed))
        self._stale = added

    def _count(self, places: Iterable[Place], assumed: Mapping[tuple[str, ...], Mapping[str, int]]) -> set[Domain]:
        """Count in leaves, and return their parents."""
        reasons, count = self._reasons, self._counter.count
        slice_size = self._shape.slice_size if self._shape.slice_level == len(self.levels) - 1 else 0
        parents: set[Domain] = set()
        for place in places:
            leaf = place.domain
            assert isinstance(leaf, Leaf), "pods are in leaves"
            reason = count(place, leaf, assumed.get(leaf.key, _NOTHING) if assumed else _NOTHING)
            if reason:
                reasons[leaf] = reason
            elif reasons:
                reasons.pop(leaf, None)
            if slice_size:
                place.slices = place.pods // slice_size
                place.slices_with_leader = place.pods_with_leader // slice_size
            if leaf.parent is not None:
                parents.add(leaf.parent)
        return parents

    def _roll_up_parents(self, parents: set[Domain]) -> None:
        """Compute the counts of domains, and of all domains above them, from those of their children."""
        while parents:
            above: set[Domain] = set()
            for domain in parents:
                place = self.levels[domain.level][domain.values]
                if self._has_leader or self._shape.inner_sizes:
                    roll_up(place, self._shape, self._shape.inner_sizes, has_leader=self._has_leader)
                else:
                    _roll_up_plainly(place, self._shape)
                if domain.parent is not None:
                    above.add(domain.parent)
            parents = above

    def exclusions(self) -> str:
        """Return the end of a message about leaves that no pod fits into, empty if there are none."""
        if not self._reasons:
            return ""
        counts = collections.Counter(self._reasons.values())
        reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(counts.items()))
        return f". Total nodes: {len(self._tree.leaves)}; excluded: {reasons}"


class Counts:
    """Counted places of a tree, for the kinds of pods that were searched last."""

    def __init__(self, tree: Tree) -> None:
        self._tree: Final = tree
        self._counted: Final[dict[tuple[object, ...], CountedPlaces]] = {}
        """Places by kind of pods, the least recently used first."""
        tree.subscribe(self._mark)

    def get(self, pods: Pods, shape: Shape, assumed: Mapping[tuple[str, ...], Mapping[str, int]]) -> CountedPlaces:
        """Return the places for pods. A search must leave the counts as they are."""
        if pods.within or pods.devices is not None:
            places = CountedPlaces(self._tree, pods, shape)
        else:
            key = (pods.identity, shape.slice_level, shape.slice_size, tuple(shape.inner_sizes.items()))
            cached = self._counted.pop(key) if key in self._counted else None
            places = self._counted[key] = CountedPlaces(self._tree, pods, shape) if cached is None else cached
            if len(self._counted) > max(_LEAST_KINDS, _MOST_PLACES // max(1, len(self._tree.leaves))):
                del self._counted[next(iter(self._counted))]
        places.refresh(assumed)
        return places

    def _mark(self, leaves: Collection[Leaf], is_usage: bool) -> None:  # noqa: FBT001 -- a listener of the tree
        for places in self._counted.values():
            if places.follows_usage or not is_usage:
                places.mark(leaves)


def roll_up(place: Place, shape: Shape, inner_sizes: Mapping[int, int], *, has_leader: bool) -> None:
    """Compute the counts of a place from those of its children."""
    level = place.domain.level
    if place.children:
        place.ordered = None
        _add_children(place, inner_sizes.get(level + 1), has_leader=has_leader)
    if level == shape.slice_level:
        place.slices = place.pods // shape.slice_size
        place.slices_with_leader = place.pods_with_leader // shape.slice_size


def _roll_up_plainly(place: Place, shape: Shape) -> None:
    """Like roll_up(), for fresh counts without a leader and without inner slices."""
    children = place.children
    place.ordered = None
    place.pods = place.pods_with_leader = sum([child.pods for child in children])
    if place.domain.level == shape.slice_level:
        place.slices = place.pods // shape.slice_size
    else:
        place.slices = sum([child.slices for child in children])
    place.slices_with_leader = place.slices
    place.leaders = 0
    place.score = sum([child.score for child in children])


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

    def __init__(self, tree: Tree, pods: Pods) -> None:
        self._pods: Final = pods
        self._per_pod: Final = _with_pod(pods.per_pod)
        self._leader: Final = None if pods.leader is None else _with_pod(pods.leader)
        self._checks_nodes: Final = tree.has_hostnames
        self._matcher: Final = _required_matcher(pods)
        self._preferences: Final = _preferences(pods) if pods.respects_preferences else ()
        has_conditions = pods.node_selector or self._matcher is not None or self._preferences
        self._checks_taints_only: Final = not has_conditions
        self._is_plain: Final = self._leader is None and not pods.within and pods.devices is None
        self._amounts: Final = sorted((name, amount) for name, amount in self._per_pod.items() if amount)

    def count(self, place: Place, leaf: Leaf, assumed: Mapping[str, int]) -> str:
        """Count the pods and the leader that fit into a leaf. Return the reason if no pod does."""
        place.pods = place.slices = place.score = 0
        place.leaders = place.pods_with_leader = place.slices_with_leader = 0
        is_mismatch_possible = not self._checks_taints_only or (leaf.node is not None and leaf.node.spec.taints)
        if self._checks_nodes and is_mismatch_possible and (reason := self._mismatch(place, leaf)):
            return reason
        if self._is_plain and not assumed:
            place.pods, limit = self._times(leaf)
            place.pods_with_leader = place.pods
            return "" if place.pods else f"resource {quotation.quote(limit)}"
        if not leaf.is_within(self._pods.within):
            return "topologyDomain"
        room = self._room(leaf, assumed)
        place.pods, limit = _times(self._per_pod, room)
        if self._leader is not None and _times(self._leader, room)[0]:
            place.leaders = 1
            for name, amount in self._leader.items():
                room[name] = room.get(name, 0) - amount
            place.pods_with_leader = _times(self._per_pod, room)[0]
        else:
            place.pods_with_leader = place.pods
        if self._pods.devices is not None and leaf.node is not None and place.pods:
            self._limit(place, leaf.node, self._pods.devices, self._pods.assumed_devices.get(leaf.key, ()))
            if not place.pods:
                return "devices"
        return f"resource {quotation.quote(limit)}" if not place.pods and limit else ""

    def _mismatch(self, place: Place, leaf: Leaf) -> str:
        """Return the reason why the node of a leaf does not suit the pods, or an empty text."""
        at = leaf.node
        assert at is not None, "a leaf with a hostname is a node"
        taint = taints.first_untolerated(at.spec.taints, self._pods.tolerations)
        if taint is not None:
            value = f"={taint.value}" if taint.value else ""
            return f"taint {quotation.quote(f'{taint.key}{value}:{taint.effect}')}"
        labels = at.metadata.labels
        if any(labels.get(key) != value for key, value in self._pods.node_selector.items()):
            return "nodeSelector"
        if self._matcher is not None and not self._matcher.matches(labels, at.metadata.name):
            return "affinity"
        place.score = sum(weight for weight, matcher in self._preferences if matcher.matches(labels, at.metadata.name))
        return ""

    def _limit(self, place: Place, at: node.Node, devices: DeviceRoom, assumed: Expected) -> None:
        """Limit the counts of a place to pods that find devices."""
        place.pods = devices.count(at, place.pods, assumed)
        if place.leaders and not devices.takes_leader(at, assumed):
            place.leaders = 0
        if place.leaders:
            most = min(place.pods, place.pods_with_leader)
            place.pods_with_leader = devices.count_with_leader(at, most, assumed)
        else:
            place.pods_with_leader = place.pods

    def _times(self, leaf: Leaf) -> tuple[int, str]:
        """Like the function _times(), for the room of a leaf."""
        capacity = leaf.capacity
        usage = _NOTHING if self._pods.ignores_usage else leaf.usage
        count, limit = _MOST, ""
        for name, amount in self._amounts:
            free = capacity.get(name, 0)
            if usage:
                free -= usage.get(name, 0)
            times = free // amount
            if times < count:
                count, limit = times, name
        return (count, limit) if count > 0 else (0, self._first_limit(capacity, usage))

    def _first_limit(self, capacity: Mapping[str, int], usage: Mapping[str, int]) -> str:
        """Return the first resource by name of which there is not enough for one pod."""
        return next(
            name for name, amount in self._amounts if (capacity.get(name, 0) - usage.get(name, 0)) // amount <= 0
        )

    def _room(self, leaf: Leaf, assumed: Mapping[str, int]) -> Amounts:
        room = dict(leaf.capacity)
        for usage in (assumed,) if self._pods.ignores_usage else (assumed, leaf.usage):
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
