"""What a pod may use of its node, with what its claims add (KEP-5517), as the kubelet reckons it.

Mapped amounts and overhead of claims add to requests, and to limits where there are any, and always for huge pages.
What the pod states as a whole stands: it is a budget, and claims are inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from drachma.accounting import aggregate, qos, requests
from drachma.api import nodeallocatable, pod
from drachma.values import names, quantity

Amounts: TypeAlias = dict[str, quantity.Quantity]


def requested(of: pod.Pod, *, with_claims: bool) -> Amounts:
    """All that a pod requests of its node."""
    total = aggregate.together(of.spec, lambda container: dict(container.resources.requests))
    if with_claims:
        aggregate.add(total, _of_claims(of))
    if of.spec.resources is not None:
        total |= _budget(of.spec.resources.requests)
    aggregate.add(total, dict(of.spec.overhead))
    return total


def limited(of: pod.Pod, *, with_claims: bool) -> Amounts:
    """All that a pod is limited to; what has no limit is not among it."""
    total = aggregate.together(of.spec, lambda container: dict(container.resources.limits))
    if with_claims:
        added = _of_claims(of)
        aggregate.add(
            total, {name: added[name] for name in added if name in total or names.is_huge_page_resource(name)}
        )
    if of.spec.resources is not None:
        total |= _budget(of.spec.resources.limits)
    aggregate.add(total, {name: amount for name, amount in of.spec.overhead.items() if name in total})
    return total


def of_container(of: pod.Pod, container: str) -> Amounts:
    """What the claims of a container bring it: all of what they are, also where other containers share them."""
    amounts: Amounts = {}
    for status, mapped, per_pod, per_container in _entries(of):
        if container in status.containers:
            for more in (mapped, per_pod, per_container):
                aggregate.add(amounts, more)
    return amounts


def memory_share(of: pod.Pod, container: str) -> int:
    """The bytes of memory that claims bring a container, if those that share a claim share what it is."""
    total = 0
    for status, mapped, per_pod, per_container in _entries(of):
        if container in status.containers:
            total += (_memory(mapped) + _memory(per_pod)) // len(status.containers) + _memory(per_container)
    return total


def quality(of: pod.Pod, *, with_claims: bool = False) -> str:
    """The quality of service class: by the spec, as the kubelet has it, or with what claims bring to containers."""
    whole = of.spec.resources
    if whole is not None:
        return qos.classify([(whole.requests, whole.limits)])
    return qos.classify(stated(of, container, with_claims=with_claims) for container in all_containers(of))


def stated(of: pod.Pod, container: pod.Container, *, with_claims: bool) -> tuple[Amounts, Amounts]:
    """What a container requests and is limited to.

    What a claim brings is the container's and no more than that: it is requested, and a limit too unless the container
    requests that resource without one.
    """
    requests_of, limits_of = dict(container.resources.requests), dict(container.resources.limits)
    if with_claims:
        brought = of_container(of, container.name)
        is_limited = {name for name in brought if name in limits_of or name not in requests_of}
        aggregate.add(requests_of, brought)
        aggregate.add(limits_of, {name: brought[name] for name in is_limited})
    return requests_of, limits_of


def all_containers(of: pod.Pod) -> tuple[pod.Container, ...]:
    """Init containers and containers."""
    return (*of.spec.init_containers, *of.spec.containers)


def _of_claims(of: pod.Pod) -> Amounts:
    amounts: Amounts = {}
    for status, mapped, per_pod, per_container in _entries(of):
        aggregate.add(amounts, mapped)
        aggregate.add(amounts, per_pod)
        for _ in status.containers:
            aggregate.add(amounts, per_container)
    return amounts


def _entries(
    of: pod.Pod,
) -> Iterator[tuple[nodeallocatable.NodeAllocatableResourceClaimStatus, Amounts, Amounts, Amounts]]:
    """What claims are, and what they need for the pod and for each of its containers."""
    for status in of.status.node_allocatable_resource_claim_statuses:
        yield (
            status,
            status.mapped(),
            _overhead(status, lambda each: each.per_pod),
            _overhead(status, lambda each: each.per_container),
        )


def _overhead(
    status: nodeallocatable.NodeAllocatableResourceClaimStatus,
    part: Callable[[nodeallocatable.NodeAllocatableOverheadResource], quantity.Quantity | None],
) -> Amounts:
    amounts = {each.name: part(each) for each in status.overhead}
    return {name: amount for name, amount in amounts.items() if amount is not None}


def _budget(stated: pod.ResourceList) -> Amounts:
    return {name: amount for name, amount in stated.items() if requests.is_budgeted(name)}


def _memory(amounts: Amounts) -> int:
    return amounts["memory"].as_int64() if "memory" in amounts else 0
