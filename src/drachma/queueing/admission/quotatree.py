"""The quota tree: cluster queues below cohorts, with the quota and the usage of each.

Quota flows upwards: the subtree quota of a node is its own quota and the quota that its children lend; the part that
its lending limit retains is local. Usage flows upwards too, as far as it exceeds the local quota. The amount that is
available to a node is the free local quota plus the amount that its parent can spare, within its borrowing limit.

Cluster queues come and go one by one (:meth:`QuotaTree.add_queue`, :meth:`QuotaTree.remove_queue`), which costs the
siblings of the queue and of its cohorts; cohorts change with a new tree. Other quotas are simulated
(:func:`snapshot.with_quota`). Usage changes by :meth:`Node.add` and :meth:`Node.remove`, and adding removed usage
restores the tree exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from drachma.queueing import amounts
from drachma.queueing.kinds import clusterqueue
from drachma.queueing.workloads.requests import FlavorResource, Usage

_IMPLICIT_WEIGHT: Final = 0.0
_DEFAULT_WEIGHT: Final = 1.0
_GIGA: Final = 10**9


class Quota(NamedTuple):
    """Quota of a node for one resource of a flavor."""

    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


_NO_QUOTA: Final = Quota(0)


class Node:
    """A cluster queue or cohort in the tree."""

    __slots__ = (
        "cohorts",
        "height",
        "is_queue",
        "local",
        "name",
        "parent",
        "queues",
        "quotas",
        "retired",
        "subtree",
        "usage",
        "weight",
    )

    def __init__(self, name: str, quotas: Mapping[FlavorResource, Quota], *, is_queue: bool, weight: float) -> None:
        self.name = name
        self.is_queue = is_queue
        self.quotas = quotas
        self.weight = weight
        self.parent: Node | None = None
        self.queues: list[Node] = []
        self.cohorts: list[Node] = []
        self.retired: list[Node] = []
        """Cluster queues that searches skip; their quota and usage still count."""
        self.subtree: dict[FlavorResource, int] = {}
        """Subtree quota: the node's own quota and the quota that its children lend."""
        self.local: dict[FlavorResource, int] = {}
        """Part of the subtree quota that the node never lends; resources without any are missing."""
        self.usage: dict[FlavorResource, int] = {}
        self.height = 0
        """Distance to the furthest cluster queue below."""

    def __repr__(self) -> str:
        return f"Node({self.name!r})"

    @property
    def root(self) -> Node:
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    @property
    def ancestors(self) -> Iterator[Node]:
        """Yield the parent, its parent, and so on up to the root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def kind(self) -> str:
        """Kind of the node in the API."""
        return "ClusterQueue" if self.is_queue else "Cohort"

    def walk(self) -> Iterator[Node]:
        """Yield this node and all nodes below, including retired queues; nearest first in each cohort."""
        yield self
        yield from self.queues
        yield from self.retired
        for cohort in self.cohorts:
            yield from cohort.walk()

    def walk_queues(self) -> Iterator[Node]:
        """Yield all cluster queues below, nearest first."""
        yield from self.queues
        for cohort in self.cohorts:
            yield from cohort.walk_queues()

    def quota(self, key: FlavorResource) -> Quota:
        """Return the node's own quota."""
        return self.quotas.get(key, _NO_QUOTA)

    def local_available(self, key: FlavorResource) -> int:
        """Return the free part of the local quota; it exceeds the local quota if usage is negative."""
        used = self.usage.get(key, 0)
        if not self.local and used >= 0:
            return 0
        return max(0, amounts.minus(self.local.get(key, 0), used))

    def available(self, key: FlavorResource) -> int:
        """Return the amount that can be used additionally; negative if usage exceeds the quota."""
        parent = self.parent
        if parent is None:
            return amounts.minus(self.subtree.get(key, 0), self.usage.get(key, 0))
        spare = parent.available(key)
        limit = self.quota(key).borrowing_limit
        if limit is not None:
            local = self.local.get(key, 0)
            lent = amounts.minus(self.subtree.get(key, 0), local)
            used = max(0, amounts.minus(self.usage.get(key, 0), local))
            spare = min(amounts.plus(amounts.minus(lent, used), limit), spare)
        if not self.local and self.usage.get(key, 0) >= 0:
            return spare
        return amounts.plus(self.local_available(key), spare)

    def potential(self, key: FlavorResource) -> int:
        """Return the amount that could be used if nothing were in use."""
        parent = self.parent
        if parent is None:
            return self.subtree.get(key, 0)
        most = amounts.plus(self.local.get(key, 0), parent.potential(key))
        limit = self.quota(key).borrowing_limit
        return most if limit is None else min(amounts.plus(self.subtree.get(key, 0), limit), most)

    def is_borrowing(self, key: FlavorResource, more: int = 0) -> bool:
        """Return True if the node exceeds its quota, with its usage or with an additional amount."""
        has = self.quota(key).nominal if self.is_queue else self.subtree.get(key, 0)
        return has < amounts.plus(self.usage.get(key, 0), more)

    def add(self, usage: Usage) -> None:
        """Add usage of a cluster queue, and to its ancestors the part that exceeds local quota."""
        for key, amount in usage.items():
            node: Node | None = self
            while node is not None:
                used = node.usage.get(key, 0)
                excess = amounts.minus(amount, node.local_available(key)) if node.local or used < 0 else amount
                node.usage[key] = amounts.plus(used, amount)
                if excess <= 0:
                    break
                amount = excess
                node = node.parent

    def remove(self, usage: Usage) -> None:
        """Remove usage."""
        for key, amount in usage.items():
            node: Node | None = self
            while node is not None:
                used = node.usage.get(key, 0)
                above = amounts.minus(used, node.local.get(key, 0)) if node.local else used
                node.usage[key] = amounts.minus(used, amount)
                if above <= 0:
                    break
                amount = min(amount, above)
                node = node.parent

    def fits(self, usage: Usage) -> bool:
        """Return True if an additional amount can be used now."""
        return all(max(0, self.available(key)) >= amount for key, amount in usage.items())

    def is_within_quota(self, keys: Iterable[FlavorResource]) -> bool:
        """Return True if the node does not exceed its quota of any of these resources."""
        return all(self.subtree.get(key, 0) >= self.usage.get(key, 0) for key in keys)

    def overflow(self, usage: Usage) -> tuple[bool, dict[FlavorResource, int]]:
        """Return whether an additional amount is within the quota, and the part of it that counts at the parent."""
        fits = True
        overflow: dict[FlavorResource, int] = {}
        for key, amount in usage.items():
            if self.subtree.get(key, 0) < amounts.plus(self.usage.get(key, 0), amount):
                fits = False
            overflow[key] = max(0, amounts.minus(amount, self.local_available(key)))
        return fits, overflow

    def borrowing_level(self, key: FlavorResource, amount: int) -> tuple[int, bool]:
        """Return the height of the lowest subtree that an additional amount fits into, and whether it is not the whole
        tree.

        Zero is the cluster queue itself. If no subtree is large enough, it is the height of the root.
        """
        if self.parent is None or not self.is_borrowing(key, amount):
            return 0, self.parent is not None
        excess = amounts.minus(amount, self.local_available(key))
        for node in self.ancestors:
            if not node.is_borrowing(key, excess):
                return node.height, node.parent is not None
            excess = amounts.minus(excess, node.local_available(key))
        return self.root.height, False

    def measure(self) -> None:
        """Compute the heights of this node and all nodes below."""
        for child in self.cohorts:
            child.measure()
        self._measure()

    def measure_upwards(self) -> None:
        """Compute the heights of this node and of its ancestors, after its children have changed."""
        for node in (self, *self.ancestors):
            node._measure()

    def _measure(self) -> None:
        """Compute the height of this node from the heights of its children."""
        self.height = max([1 if self.queues or self.cohorts else 0, *(child.height + 1 for child in self.cohorts)])

    def settle(self) -> None:
        """Compute subtree quota and usage of this node and all nodes below from the usage of cluster queues."""
        for child in (*self.cohorts, *self.queues, *self.retired):
            child.settle()
        self._settle()

    def settle_upwards(self) -> None:
        """Compute subtree quota and usage of this node and of its ancestors, after its children have changed."""
        for node in (self, *self.ancestors):
            node._settle()

    def _settle(self) -> None:
        """Compute subtree quota and usage of this node from those of its children."""
        self.subtree = {key: quota.nominal for key, quota in self.quotas.items()}
        if not self.is_queue:
            self.usage = {}
        for child in (*self.cohorts, *self.queues, *self.retired):
            for key, amount in child.subtree.items():
                lent = amounts.minus(amount, child.local.get(key, 0))
                self.subtree[key] = amounts.plus(self.subtree.get(key, 0), lent)
            for key, amount in child.usage.items():
                above = max(0, amounts.minus(amount, child.local.get(key, 0)))
                self.usage[key] = amounts.plus(self.usage.get(key, 0), above)
        self.local = {}
        for key, quota in self.quotas.items():
            if quota.lending_limit is not None:
                local = max(0, amounts.minus(self.subtree[key], quota.lending_limit))
                if local:
                    self.local[key] = local


class QuotaTree:
    """All cluster queues and cohorts, except those in or below a cycle of cohorts."""

    def __init__(
        self, queues: Iterable[clusterqueue.ClusterQueue], cohorts: Iterable[clusterqueue.Cohort] = ()
    ) -> None:
        self.queues: dict[str, Node] = {}
        self.cohorts: dict[str, Node] = {}
        self.circular: set[str] = set()
        """Cluster queues that are left out because their cohorts form a cycle."""
        self._circular_cohorts: set[str] = set()
        parents: dict[str, str] = {}
        for cohort in cohorts:
            name = cohort.metadata.name
            quotas = quotas_of(cohort.spec.resource_groups)
            self.cohorts[name] = Node(name, quotas, is_queue=False, weight=_weight(cohort.spec.fair_sharing))
            if cohort.spec.parent_name:
                parents[name] = cohort.spec.parent_name
        for name in _circular(parents):
            del self.cohorts[name]
            self._circular_cohorts.add(name)
        self._declared: Final = frozenset(self.cohorts)
        """Cohorts that exist as objects."""
        for name, parent in parents.items():
            if name in self.cohorts:
                self._join(self.cohorts[name], self._cohort(parent))
        for queue in queues:
            self._put(queue)
        for node in (*self.cohorts.values(), *self.queues.values()):
            if node.parent is None:
                node.settle()
                node.measure()

    def _put(self, queue: clusterqueue.ClusterQueue) -> Node | None:
        """Add a cluster queue without computing its quota. Return None if its cohorts form a cycle."""
        name = queue.metadata.name
        parent = queue.spec.cohort_name
        if parent in self._circular_cohorts:
            self.circular.add(name)
            return None
        quotas = quotas_of(queue.spec.resource_groups)
        node = Node(name, quotas, is_queue=True, weight=_weight(queue.spec.fair_sharing))
        self.queues[name] = node
        if parent:
            self._join(node, self._cohort(parent))
        return node

    def add_queue(self, queue: clusterqueue.ClusterQueue, usage: Usage) -> Node | None:
        """Add a cluster queue with its usage. Return None if its cohorts form a cycle."""
        node = self._put(queue)
        if node is not None:
            node.usage = dict(usage)
            node.settle_upwards()
            node.measure_upwards()
        return node

    def remove_queue(self, node: Node) -> None:
        """Remove a cluster queue, retired or not, and its cohort if only this queue named it."""
        self.queues.pop(node.name, None)
        cohort = node.parent
        if cohort is None:
            return
        (cohort.queues if node in cohort.queues else cohort.retired).remove(node)
        cohort.settle_upwards()
        cohort.measure_upwards()
        if cohort.name not in self._declared and not (cohort.queues or cohort.retired or cohort.cohorts):
            del self.cohorts[cohort.name]

    def retire(self, name: str) -> None:
        """Leave a cluster queue out of searches; its quota and usage still count in its cohort."""
        node = self.queues.pop(name)
        if node.parent is not None:
            node.parent.queues.remove(node)
            node.parent.retired.append(node)
            node.parent.measure_upwards()

    def _cohort(self, name: str) -> Node:
        """Return a cohort, creating it if it is only named."""
        if name not in self.cohorts:
            self.cohorts[name] = Node(name, {}, is_queue=False, weight=_IMPLICIT_WEIGHT)
        return self.cohorts[name]

    def _join(self, node: Node, parent: Node) -> None:
        node.parent = parent
        (parent.queues if node.is_queue else parent.cohorts).append(node)


def _circular(parents: Mapping[str, str]) -> list[str]:
    """Return the cohorts in or below a cycle."""
    circular = []
    for start in parents:
        visited = {start}
        name = parents.get(start)
        while name is not None and name not in visited:
            visited.add(name)
            name = parents.get(name)
        if name is not None:
            circular.append(start)
    return circular


def quotas_of(groups: Iterable[clusterqueue.ResourceGroup]) -> dict[FlavorResource, Quota]:
    """Return the quotas of resource groups."""
    return {
        FlavorResource(flavor.name, quota.name): Quota(
            amounts.quota(quota.name, quota.nominal_quota),
            None if quota.borrowing_limit is None else amounts.quota(quota.name, quota.borrowing_limit),
            None if quota.lending_limit is None else amounts.quota(quota.name, quota.lending_limit),
        )
        for group in groups
        for flavor in group.flavors
        for quota in flavor.resources
    }


def _weight(sharing: clusterqueue.FairSharing | None) -> float:
    if sharing is None or sharing.weight is None:
        return _DEFAULT_WEIGHT
    try:
        return sharing.weight.nanos / _GIGA
    except OverflowError:
        return math.inf
