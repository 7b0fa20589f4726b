"""The quota tree: cluster queues below cohorts below cohorts, what each may use, and what is in use.

Quota flows upwards: what a node has, its own and what its children lend it, is its subtree quota; what its lending
limit holds back is local to it. Usage flows upwards too, as far as it exceeds what is local. What a node can still get
is what is left locally and what its parent can spare, no more than its borrowing limit allows.

The shape and the quotas of a tree do not change, but in thought (:func:`snapshot.with_quota`); only
usage does, by :meth:`Node.add` and :meth:`Node.remove`, and adding what was removed gives the same tree again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from drachma.queueing import amounts
from drachma.queueing.kinds import clusterqueue
from drachma.queueing.workloads.requests import FlavorResource, Usage

_IMPLICIT_WEIGHT: Final = 0.0
_DEFAULT_WEIGHT: Final = 1.0
_GIGA: Final = 10**9


class Quota(NamedTuple):
    """What a node has of one resource of a flavor, by itself."""

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
        """Cluster queues that nobody looks at; their quota and usage count all the same."""
        self.subtree: dict[FlavorResource, int] = {}
        """What it has, with what its children lend it."""
        self.local: dict[FlavorResource, int] = {}
        """What of that it never lends; resources without any are not listed."""
        self.usage: dict[FlavorResource, int] = {}
        self.height = 0
        """How far it is to the furthest cluster queue below."""

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
        """Its parent, the parent's parent, up to the root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def kind(self) -> str:
        """What it is called in the API."""
        return "ClusterQueue" if self.is_queue else "Cohort"

    def walk(self) -> Iterator[Node]:
        """This node and all below it, also queues that nobody looks at; nearest first in each cohort."""
        yield self
        yield from self.queues
        yield from self.retired
        for cohort in self.cohorts:
            yield from cohort.walk()

    def walk_queues(self) -> Iterator[Node]:
        """All cluster queues below, nearest first."""
        yield from self.queues
        for cohort in self.cohorts:
            yield from cohort.walk_queues()

    def quota(self, key: FlavorResource) -> Quota:
        """What it has by itself."""
        return self.quotas.get(key, _NO_QUOTA)

    def local_available(self, key: FlavorResource) -> int:
        """What is left of what it never lends; more than that where less than nothing is in use."""
        used = self.usage.get(key, 0)
        if not self.local and used >= 0:
            return 0
        return max(0, amounts.minus(self.local.get(key, 0), used))

    def available(self, key: FlavorResource) -> int:
        """How much more can be used here now; negative where more is in use than there is."""
        parent = self.parent
        if parent is None:
            return amounts.minus(self.subtree.get(key, 0), self.usage.get(key, 0))
        spare = parent.available(key)
        limit = self.quota(key).borrowing_limit
        if limit is not None:
            local = self.local.get(key, 0)
            stored = amounts.minus(self.subtree.get(key, 0), local)
            used = max(0, amounts.minus(self.usage.get(key, 0), local))
            spare = min(amounts.plus(amounts.minus(stored, used), limit), spare)
        if not self.local and self.usage.get(key, 0) >= 0:
            return spare
        return amounts.plus(self.local_available(key), spare)

    def potential(self, key: FlavorResource) -> int:
        """How much could be used here if nothing else were in use."""
        parent = self.parent
        if parent is None:
            return self.subtree.get(key, 0)
        most = amounts.plus(self.local.get(key, 0), parent.potential(key))
        limit = self.quota(key).borrowing_limit
        return most if limit is None else min(amounts.plus(self.subtree.get(key, 0), limit), most)

    def is_borrowing(self, key: FlavorResource, more: int = 0) -> bool:
        """Whether it uses, or with so much more would use, more than it has."""
        has = self.quota(key).nominal if self.is_queue else self.subtree.get(key, 0)
        return has < amounts.plus(self.usage.get(key, 0), more)

    def add(self, usage: Usage) -> None:
        """Count usage of a cluster queue, and above it what does not fit locally."""
        for key, amount in usage.items():
            node: Node | None = self
            while node is not None:
                used = node.usage.get(key, 0)
                rest = amounts.minus(amount, node.local_available(key)) if node.local or used < 0 else amount
                node.usage[key] = amounts.plus(used, amount)
                if rest <= 0:
                    break
                amount = rest
                node = node.parent

    def remove(self, usage: Usage) -> None:
        """Take usage back."""
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
        """Whether so much more can be used here now."""
        return all(max(0, self.available(key)) >= amount for key, amount in usage.items())

    def is_within_quota(self, keys: Iterable[FlavorResource]) -> bool:
        """Whether it uses no more than it has, of any of these."""
        return all(self.subtree.get(key, 0) >= self.usage.get(key, 0) for key in keys)

    def overflow(self, usage: Usage) -> tuple[bool, dict[FlavorResource, int]]:
        """Whether so much more is within what it has, and how much of that would count at its parent."""
        fits = True
        rest: dict[FlavorResource, int] = {}
        for key, amount in usage.items():
            if self.subtree.get(key, 0) < amounts.plus(self.usage.get(key, 0), amount):
                fits = False
            rest[key] = max(0, amounts.minus(amount, self.local_available(key)))
        return fits, rest

    def borrowing_level(self, key: FlavorResource, amount: int) -> tuple[int, bool]:
        """The height of the lowest subtree that so much more fits into, and whether that is not the whole tree.

        Zero: the cluster queue itself. Where nothing is high enough it is the height of the root.
        """
        if self.parent is None or not self.is_borrowing(key, amount):
            return 0, self.parent is not None
        rest = amounts.minus(amount, self.local_available(key))
        for node in self.ancestors:
            if not node.is_borrowing(key, rest):
                return node.height, node.parent is not None
            rest = amounts.minus(rest, node.local_available(key))
        return self.root.height, False

    def measure(self) -> int:
        """Work out the heights of this node and all below it."""
        heights = [child.measure() + 1 for child in self.cohorts]
        self.height = max([1 if self.queues or self.cohorts else 0, *heights])
        return self.height

    def settle(self) -> None:
        """Work out subtree quota and usage of this node and all below it, from the usage of cluster queues."""
        self.subtree = {key: quota.nominal for key, quota in self.quotas.items()}
        if not self.is_queue:
            self.usage = {}
        for child in (*self.cohorts, *self.queues, *self.retired):
            child.settle()
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
    """All cluster queues and cohorts. Those in or below a circle of cohorts are not in it."""

    def __init__(
        self, queues: Iterable[clusterqueue.ClusterQueue], cohorts: Iterable[clusterqueue.Cohort] = ()
    ) -> None:
        self.queues: dict[str, Node] = {}
        self.cohorts: dict[str, Node] = {}
        self.circular: set[str] = set()
        """Cluster queues that are left out because their cohorts go in a circle."""
        parents: dict[str, str] = {}
        for cohort in cohorts:
            name = cohort.metadata.name
            quotas = quotas_of(cohort.spec.resource_groups)
            self.cohorts[name] = Node(name, quotas, is_queue=False, weight=_weight(cohort.spec.fair_sharing))
            if cohort.spec.parent_name:
                parents[name] = cohort.spec.parent_name
        for name in _circular(parents):
            del self.cohorts[name]
            parents[name] = name
        for name, parent in parents.items():
            if name in self.cohorts:
                self._join(self.cohorts[name], self._cohort(parent))
        for queue in queues:
            name = queue.metadata.name
            parent = queue.spec.cohort_name
            if parent and parents.get(parent) == parent:
                self.circular.add(name)
                continue
            quotas = quotas_of(queue.spec.resource_groups)
            node = Node(name, quotas, is_queue=True, weight=_weight(queue.spec.fair_sharing))
            self.queues[name] = node
            if parent:
                self._join(node, self._cohort(parent))
        for node in (*self.cohorts.values(), *self.queues.values()):
            if node.parent is None:
                node.settle()
                node.measure()

    def retire(self, name: str) -> None:
        """Leave a cluster queue out of what is looked at; its quota and usage still count in its cohort."""
        node = self.queues.pop(name)
        if node.parent is not None:
            node.parent.queues.remove(node)
            node.parent.retired.append(node)
            node.root.measure()

    def _cohort(self, name: str) -> Node:
        """A cohort, made up where it is only named."""
        if name not in self.cohorts:
            self.cohorts[name] = Node(name, {}, is_queue=False, weight=_IMPLICIT_WEIGHT)
        return self.cohorts[name]

    def _join(self, node: Node, parent: Node) -> None:
        node.parent = parent
        (parent.queues if node.is_queue else parent.cohorts).append(node)


def _circular(parents: Mapping[str, str]) -> list[str]:
    """Cohorts whose way up never ends."""
    circular = []
    for start in parents:
        seen = {start}
        name = parents.get(start)
        while name is not None and name not in seen:
            seen.add(name)
            name = parents.get(name)
        if name is not None:
            circular.append(start)
    return circular


def quotas_of(groups: Iterable[clusterqueue.ResourceGroup]) -> dict[FlavorResource, Quota]:
    """The quotas of resource groups."""
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
    return sharing.weight.nanos / _GIGA
