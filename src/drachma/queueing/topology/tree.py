"""Topology tree: the nodes of a flavor, grouped by the values of their topology labels.

A node is in the tree if it is ready, schedulable, has the node labels of the flavor and a label for every level. Nodes
with equal values on all levels share a leaf and add their resources. If the lowest level is the hostname, every leaf
is one node, which the hostname label identifies, and taints and node affinity are checked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from drachma.api import node, pod
from drachma.claims import conditions
from drachma.queueing import amounts
from drachma.queueing.topology.assignment import HOSTNAME, Assignment
from drachma.queueing.topology.rooms import Item, Room, Rooms
from drachma.queueing.workloads.placedpods import DomainCount

PODS: Final = "pods"

Amounts = dict[str, int]


class Domain:
    """Nodes that share the values of all levels down to ``level``."""

    __slots__ = ("children", "level", "parent", "rank", "values")

    def __init__(self, values: tuple[str, ...], parent: Domain | None) -> None:
        self.values: Final = values
        self.level: Final = len(values) - 1
        self.parent: Final = parent
        self.children: Final[list[Domain]] = []
        self.rank = -1
        """Position among the domains of the level in the order of their values; -1 until it is known."""

    def ancestor(self, level: int) -> Domain:
        """Return the domain of a higher level that contains this one."""
        domain = self
        while domain.level > level and domain.parent is not None:
            domain = domain.parent
        return domain

    @property
    def identity(self) -> str:
        """Text that Kueue identifies the domain by on its level."""
        return ",".join(self.values)

    def is_within(self, identity: str) -> bool:
        """Return True if this domain is inside the identified domain, or is that domain.

        Like Kueue, it compares the path of level values. So no node is within a domain identified by its hostname
        alone, unless the hostname is the only level.
        """
        path = ",".join(self.values)
        return not identity or path == identity or path.startswith(identity + ",")


class Leaf(Domain):
    """Domain of the lowest level with its resources."""

    __slots__ = ("_last_count", "key", "node", "room")

    def __init__(self, values: tuple[str, ...], parent: Domain | None, *, key: tuple[str, ...], room: Room) -> None:
        super().__init__(values, parent)
        self.key: Final = key
        """Values in assignments: the hostname alone, or all level values."""
        self.room = room
        self.node: node.Node | None = None
        """The node, if the lowest level is the hostname."""
        self._last_count = DomainCount(key, 0)

    def domain_count(self, pods: int) -> DomainCount:
        """Return a number of pods in this leaf. Repeated calls with a number return one object."""
        if self._last_count.pods != pods:
            self._last_count = DomainCount(self.key, pods)
        return self._last_count

    @property
    def identity(self) -> str:
        return ",".join(self.key)


class Tree:
    """Domains of one flavor."""

    def __init__(self, name: str, levels: Sequence[str]) -> None:
        self.name: Final = name
        """Name of the topology, for messages."""
        self.levels: Final = tuple(levels)
        self._domains: Final[list[dict[tuple[str, ...], Domain]]] = [{} for _ in levels[1:]]
        """Domains above the leaves by level and values."""
        self.leaves: Final[dict[tuple[str, ...], Leaf]] = {}
        self.has_taints = False
        """True if a node of a leaf has taints."""
        self._rooms: Final = Rooms()
        self._leaf_of_node: Final[dict[str, Leaf]] = {}
        self._ranked: list[list[Domain]] = []
        self._ranked_leaves: list[Leaf] = []
        self._listeners: Final[list[Callable[[Collection[Leaf], bool], None]]] = []
        self.version = 0
        """Number of changes of room so far."""

    def subscribe(self, listener: Callable[[Collection[Leaf], bool], None]) -> None:
        """Call a function with the leaves whose room changes, and True if that is by usage of admitted workloads.

        All nodes must be in the tree by then.
        """
        self._listeners.append(listener)

    @property
    def has_hostnames(self) -> bool:
        """True if the lowest level is the hostname, so that a leaf is one node."""
        return self.levels[-1:] == (HOSTNAME,)

    @property
    def assignment_levels(self) -> tuple[str, ...]:
        """Levels whose values assignments contain."""
        return self.levels[-1:] if self.has_hostnames else self.levels

    def add_node(self, added: node.Node, *, node_labels: Mapping[str, str]) -> None:
        """Add a node if it is ready, schedulable and has the labels of the flavor and of all levels."""
        labels = added.metadata.labels
        if not is_usable(added) or any(labels.get(key) != value for key, value in node_labels.items()):
            return
        if any(level not in labels for level in self.levels):
            return
        values = tuple(labels[level] for level in self.levels)
        leaf = self._leaf(values)
        if self.has_hostnames and leaf.node is None:
            leaf.node = added
            self.has_taints = self.has_taints or bool(added.spec.taints)
        self._leaf_of_node[added.metadata.name] = leaf
        allocatable = [(name, amounts.requested(name, each)) for name, each in added.status.allocatable.items()]
        leaf.room = self._rooms.with_capacity(leaf.room, allocatable)

    def add_pod(self, node_name: str, requests: Mapping[str, int], *, sign: int = 1) -> None:
        """Count a running pod outside topology aware scheduling, which takes its requests and one ``pods``.

        -1 as ``sign`` takes it back.
        """
        leaf = self._leaf_of_node.get(node_name)
        if leaf is None:
            return
        leaf.room = self._rooms.with_capacity(leaf.room, _with_pod(requests), sign=-sign)
        self._report((leaf,), is_usage=False)

    def add_usage(self, key: tuple[str, ...], usage: Mapping[str, int], *, sign: int = 1) -> None:
        """Count the usage of admitted workloads in a leaf; -1 as ``sign`` takes it back."""
        leaf = self.leaves.get(key)
        if leaf is not None:
            leaf.room = self._rooms.with_usage(leaf.room, usage.items(), times=sign)
            self._report((leaf,), is_usage=True)

    def add_places(self, domains: Sequence[DomainCount], per_pod: Mapping[str, int], *, sign: int = 1) -> None:
        """Count the usage of pods in leaves, with one ``pods`` for each; -1 as ``sign`` takes it back."""
        items = _with_pod(per_pod)
        changes: dict[tuple[Room, int], Room] = {}
        leaves = []
        for values, pods in domains:
            leaf = self.leaves.get(values)
            if leaf is not None:
                change = (leaf.room, pods)
                room = changes.get(change)
                if room is None:
                    room = changes[change] = self._rooms.with_usage(leaf.room, items, times=sign * pods)
                leaf.room = room
                leaves.append(leaf)
        self._report(leaves, is_usage=True)

    def has_room(self, domains: Iterable[DomainCount], per_pod: Mapping[str, int]) -> bool:
        """Return True if every leaf has the resources for its pods."""
        items = [(name, amount) for name, amount in per_pod.items() if amount > 0]
        roomy: set[tuple[Room, int]] = set()
        for values, pods in domains:
            leaf = self.leaves.get(values)
            if leaf is None:
                return False
            if (leaf.room, pods) in roomy:
                continue
            if any(leaf.room.free(name) // amount < pods for name, amount in items):
                return False
            roomy.add((leaf.room, pods))
        return True

    def _report(self, leaves: Collection[Leaf], *, is_usage: bool) -> None:
        self.version += 1
        for listener in self._listeners:
            listener(leaves, is_usage)

    def level_index(self, label: str) -> int | None:
        """Return the number of a level, 0 for the highest, or None."""
        return self.levels.index(label) if label in self.levels else None

    def assignment(self, ranks: Iterable[int], counts: Iterable[int]) -> Assignment:
        """Return the assignment of numbers of pods to leaves of these ranks, ordered by all level values."""
        leaves, pods = self.leaves_by_rank(), dict(zip(ranks, counts, strict=True))
        domains = [leaves[rank].domain_count(pods[rank]) for rank in sorted(pods) if pods[rank]]
        return Assignment(self.assignment_levels, tuple(domains))

    def domains_by_rank(self) -> Sequence[Sequence[Domain]]:
        """Return the domains of each level above the leaves in the order of their values, as are their children.

        The rank of a domain is its position there. Costs a sort if nodes were added since the last call.
        """
        self._rank()
        return self._ranked

    def leaves_by_rank(self) -> Sequence[Leaf]:
        """Return the leaves in the order of their values. Costs a sort if nodes were added since the last call."""
        self._rank()
        return self._ranked_leaves

    def _rank(self) -> None:
        if len(self._ranked_leaves) == len(self.leaves):
            return
        self._ranked_leaves = sorted(self.leaves.values(), key=_values)
        self._ranked = [sorted(level.values(), key=_values) for level in self._domains]
        levels: list[Sequence[Domain]] = [*self._ranked, self._ranked_leaves]
        for domains in levels:
            for rank, domain in enumerate(domains):
                domain.rank = rank
                domain.children.sort(key=_values)

    def merge(self, first: Assignment, second: Assignment) -> Assignment:
        """Return the assignment of the pods of both."""
        counts: dict[tuple[str, ...], int] = {}
        for domain in (*first.domains, *second.domains):
            counts[domain.values] = counts.get(domain.values, 0) + domain.pods
        self._rank()
        return self.assignment([self.leaves[values].rank for values in counts], counts.values())

    def stale_domain(self, assignment: Assignment) -> str | None:
        """Return the first value of a domain that no longer exists, or None."""
        return next((domain.values[0] for domain in assignment.domains if domain.values not in self.leaves), None)

    def _leaf(self, values: tuple[str, ...]) -> Leaf:
        key = values[-1:] if self.has_hostnames else values
        leaf = self.leaves.get(key)
        if leaf is None:
            parent = self._parent(values[:-1])
            leaf = self.leaves[key] = Leaf(values, parent, key=key, room=self._rooms.empty)
            if parent is not None:
                parent.children.append(leaf)
        return leaf

    def _parent(self, values: tuple[str, ...]) -> Domain | None:
        if not values:
            return None
        level = self._domains[len(values) - 1]
        domain = level.get(values)
        if domain is None:
            parent = self._parent(values[:-1])
            domain = level[values] = Domain(values, parent)
            if parent is not None:
                parent.children.append(domain)
        return domain


def _values(domain: Domain) -> tuple[str, ...]:
    return domain.values


def _with_pod(per_pod: Mapping[str, int]) -> list[Item]:
    """Return the resources of one pod with its share of the number of pods."""
    return [*per_pod.items(), (PODS, 1)]


def is_usable(checked: node.Node) -> bool:
    """Return True if a node is ready and schedulable."""
    return not checked.spec.unschedulable and conditions.is_true(checked.status.conditions, "Ready")


def is_running(checked: pod.Pod) -> bool:
    """Return True if a pod takes resources of a node."""
    return bool(checked.spec.node_name) and checked.status.phase not in {"Succeeded", "Failed"}
