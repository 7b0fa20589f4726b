"""Shortages: of which flavor and resource there is too little, how much, where the limit is, and who has it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from drachma.queueing import amounts
from drachma.queueing.admission.cycle import Entry
from drachma.queueing.admission.quotatree import Node
from drachma.queueing.explanation.question import Question
from drachma.queueing.workloads.requests import FlavorResource, Usage


class Level(msgspec.Struct, frozen=True):
    """A queue or cohort on the way up: what it has by itself, in all, and what is in use of that."""

    kind: str
    name: str
    nominal: int
    quota: int
    used: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


class Holding(msgspec.Struct, frozen=True):
    """What a workload has of something."""

    workload: str
    queue: str
    priority: int
    amount: int


class Reserve(msgspec.Struct, frozen=True):
    """What somebody in the tree has free and does not lend."""

    kind: str
    name: str
    lending_limit: int
    amount: int


class Shortage(msgspec.Struct, frozen=True):
    """Too little of one resource of a flavor for a pod set."""

    pod_set: str
    key: FlavorResource
    request: int
    """What the pod set, and those before it, ask for."""
    available: int
    """How much of that can be had now; negative where more is in use than there is."""
    potential: int
    """How much could be had if nothing else were in use."""
    levels: tuple[Level, ...]
    """The queue and the cohorts above it, up to where the limit is."""
    limit: str
    """What sets the limit: ``quota`` or ``borrowingLimit`` of the last level."""
    reserves: tuple[Reserve, ...]
    holdings: tuple[Holding, ...]

    @property
    def missing(self) -> int:
        return amounts.minus(self.request, self.available)


class Unsuitable(msgspec.Struct, frozen=True):
    """A flavor that a pod set cannot use, or a resource that the queue has none of."""

    pod_set: str
    reason: str


def find(question: Question, entry: Entry) -> tuple[tuple[Shortage, ...], tuple[Unsuitable, ...]]:
    """What keeps a workload from being admitted, up to the first pod set for which there is nothing.

    Where pod sets before it were given flavors, what they take of them counts.
    """
    reasons: list[Shortage | Unsuitable] = []
    taken: dict[FlavorResource, int] = {}
    assigned = {each.name: each for each in entry.assignment.pod_sets}
    for name, requests in question.requests():
        if name not in assigned:
            break
        for resource in sorted(requests):
            reasons += _of_resource(question, name, resource, request=requests[resource], taken=taken)
        for resource, flavor in assigned[name].flavors.items():
            key = FlavorResource(flavor.name, resource)
            taken[key] = amounts.plus(taken.get(key, 0), requests.get(resource, 0))
    shortages = tuple(each for each in reasons if isinstance(each, Shortage))
    return shortages, tuple(dict.fromkeys(each for each in reasons if isinstance(each, Unsuitable)))


def _of_resource(
    question: Question, pod_set: str, resource: str, *, request: int, taken: Usage
) -> Iterator[Shortage | Unsuitable]:
    group = question.queue.group_of(resource)
    if group is None:
        if request and not question.settings.ignores_undeclared:
            yield Unsuitable(pod_set, f"cluster queue {question.queue.name} has no quota for {resource}")
        return
    for flavor in group.flavors:
        reason = question.mismatch(pod_set, flavor)
        if reason is not None:
            yield Unsuitable(pod_set, reason)
            continue
        key = FlavorResource(flavor, resource)
        needed = amounts.plus(taken.get(key, 0), request)
        if needed > max(0, question.queue.node.available(key)):
            yield _shortage(question, pod_set, key, request=needed)


def _shortage(question: Question, pod_set: str, key: FlavorResource, *, request: int) -> Shortage:
    node = question.queue.node
    way, limit = _limit(node, key)
    holdings = (
        Holding(info.key, info.cluster_queue, info.priority, info.usage[key])
        for info in question.holders(frozenset({key}))
    )
    return Shortage(
        pod_set,
        key,
        request,
        node.available(key),
        node.potential(key),
        tuple(_level(each, key) for each in way),
        limit,
        tuple(_reserves(node, key)),
        tuple(holdings),
    )


def _limit(queue: Node, key: FlavorResource) -> tuple[list[Node], str]:
    """The way up to what sets the limit, as :meth:`Node.available` goes it, and which field that is."""
    way = []
    node: Node = queue
    while True:
        way.append(node)
        parent = node.parent
        if parent is None:
            return way, "quota"
        if node.quota(key).borrowing_limit is not None and node.available(key) < amounts.plus(
            node.local_available(key), parent.available(key)
        ):
            return way, "borrowingLimit"
        node = parent


def _level(node: Node, key: FlavorResource) -> Level:
    quota = node.quota(key)
    return Level(
        node.kind,
        node.name,
        quota.nominal,
        node.subtree.get(key, 0),
        node.usage.get(key, 0),
        quota.borrowing_limit,
        quota.lending_limit,
    )


def _reserves(queue: Node, key: FlavorResource) -> Iterator[Reserve]:
    """Who has some left beside the queue and what is above it, and keeps it."""
    own = {id(queue), *map(id, queue.ancestors)}
    for node in queue.root.walk():
        limit = node.quota(key).lending_limit
        if id(node) not in own and limit is not None and node.local_available(key):
            yield Reserve(node.kind, node.name, limit, node.local_available(key))
