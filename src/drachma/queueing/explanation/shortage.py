"""Shortages: the flavor and resource that is missing, the amount, the limit, and the holders."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from drachma.queueing import amounts
from drachma.queueing.admission.entry import Entry
from drachma.queueing.admission.quotatree import Node
from drachma.queueing.explanation.question import Question
from drachma.queueing.workloads.requests import FlavorResource, Usage


class Level(msgspec.Struct, frozen=True):
    """A queue or cohort on the path to the root: its own quota, its subtree quota, and its usage."""

    kind: str
    name: str
    nominal: int
    quota: int
    used: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


class Holding(msgspec.Struct, frozen=True):
    """Usage of a workload."""

    workload: str
    queue: str
    priority: int
    amount: int


class Reserve(msgspec.Struct, frozen=True):
    """Free quota that another queue or cohort does not lend."""

    kind: str
    name: str
    lending_limit: int
    amount: int


class Shortage(msgspec.Struct, frozen=True):
    """Shortage of one resource of a flavor for a pod set."""

    pod_set: str
    key: FlavorResource
    request: int
    """Request of the pod set and of those before it."""
    available: int
    """Amount that is available now; negative if usage exceeds the quota."""
    potential: int
    """Amount that would be available if nothing were in use."""
    levels: tuple[Level, ...]
    """The queue and its cohorts, up to the level with the limit."""
    limit: str
    """Field that sets the limit: ``quota`` or ``borrowingLimit`` of the last level."""
    reserves: tuple[Reserve, ...]
    holdings: tuple[Holding, ...]

    @property
    def missing(self) -> int:
        return amounts.minus(self.request, self.available)


class Unsuitable(msgspec.Struct, frozen=True):
    """A flavor that a pod set cannot use, or a resource that the queue does not have."""

    pod_set: str
    reason: str


def find(question: Question, entry: Entry) -> tuple[tuple[Shortage, ...], tuple[Unsuitable, ...]]:
    """Return the shortages of a workload, up to the first pod set without flavors.

    Usage of earlier pod sets that got flavors counts.
    """
    reasons: list[Shortage | Unsuitable] = []
    used_before: dict[FlavorResource, int] = {}
    assigned = {each.name: each for each in entry.assignment.pod_sets}
    for name, requests in question.requests():
        if name not in assigned:
            break
        for resource in sorted(requests):
            reasons += _resource_shortage(question, name, resource, request=requests[resource], used_before=used_before)
        for resource, flavor in assigned[name].flavors.items():
            key = FlavorResource(flavor.name, resource)
            used_before[key] = amounts.plus(used_before.get(key, 0), requests.get(resource, 0))
    shortages = tuple(each for each in reasons if isinstance(each, Shortage))
    return shortages, tuple(dict.fromkeys(each for each in reasons if isinstance(each, Unsuitable)))


def _resource_shortage(
    question: Question, pod_set: str, resource: str, *, request: int, used_before: Usage
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
        needed = amounts.plus(used_before.get(key, 0), request)
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
    """Return the path to the level that sets the limit, as :meth:`Node.available` walks it, and the field."""
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
    """Return queues and cohorts outside of the path that have free quota and do not lend it."""
    own = {id(queue), *map(id, queue.ancestors)}
    for node in queue.root.walk():
        limit = node.quota(key).lending_limit
        if id(node) not in own and limit is not None and node.local_available(key):
            yield Reserve(node.kind, node.name, limit, node.local_available(key))
