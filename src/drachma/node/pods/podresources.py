"""Requests and limits of a pod on its node, with the resources of its claims (KEP-5517), as the kubelet counts them.

The mapped amounts and the overhead of claims add to requests. They add to limits if the resource has a limit, and
always for huge pages. Pod-level requests and limits stay as they are: they are a budget that includes the claims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from drachma.accounting import aggregate, qos, requests
from drachma.api import nodeallocatable
from drachma.api.pod import Container, Pod, ResourceList
from drachma.values import names, quantity

Amounts: TypeAlias = dict[str, quantity.Quantity]


def requested(pod: Pod, *, with_claims: bool) -> Amounts:
    """Return all requests of a pod."""
    total = aggregate.together(pod.spec, lambda container: dict(container.resources.requests))
    if with_claims:
        aggregate.add(total, _claimed(pod))
    if pod.spec.resources is not None:
        total |= _budget(pod.spec.resources.requests)
    aggregate.add(total, dict(pod.spec.overhead))
    return total


def limited(pod: Pod, *, with_claims: bool) -> Amounts:
    """Return all limits of a pod; a resource without a limit is absent."""
    total = aggregate.together(pod.spec, lambda container: dict(container.resources.limits))
    if with_claims:
        claims = _claimed(pod)
        aggregate.add(
            total, {name: claims[name] for name in claims if name in total or names.is_huge_page_resource(name)}
        )
    if pod.spec.resources is not None:
        total |= _budget(pod.spec.resources.limits)
    aggregate.add(total, {name: amount for name, amount in pod.spec.overhead.items() if name in total})
    return total


def claimed_by_container(pod: Pod, container: str) -> Amounts:
    """Return the resources of a container's claims, in full even if other containers share a claim."""
    amounts: Amounts = {}
    for status, mapped, per_pod, per_container in _entries(pod):
        if container in status.containers:
            for more in (mapped, per_pod, per_container):
                aggregate.add(amounts, more)
    return amounts


def memory_share(pod: Pod, container: str) -> int:
    """Return the memory in bytes that claims give a container; containers that share a claim share its memory."""
    total = 0
    for status, mapped, per_pod, per_container in _entries(pod):
        if container in status.containers:
            total += (_memory(mapped) + _memory(per_pod)) // len(status.containers) + _memory(per_container)
    return total


def quality(pod: Pod, *, with_claims: bool = False) -> str:
    """Return the quality of service class by the spec, as in the kubelet, or with the resources of claims."""
    budget = pod.spec.resources
    if budget is not None:
        return qos.classify([(budget.requests, budget.limits)])
    return qos.classify(stated(pod, container, with_claims=with_claims) for container in all_containers(pod))


def stated(pod: Pod, container: Container, *, with_claims: bool) -> tuple[Amounts, Amounts]:
    """Return the requests and limits of a container.

    The resources of a claim count as requests. They also count as limits, unless the container requests the resource
    without a limit.
    """
    requests_of, limits_of = dict(container.resources.requests), dict(container.resources.limits)
    if with_claims:
        claimed = claimed_by_container(pod, container.name)
        is_limited = {name for name in claimed if name in limits_of or name not in requests_of}
        aggregate.add(requests_of, claimed)
        aggregate.add(limits_of, {name: claimed[name] for name in is_limited})
    return requests_of, limits_of


def widened(pod: Pod, container: Container) -> tuple[Amounts, Amounts]:
    """Return the requests and limits of a container with its claims: they add to what it states, as in the kubelet."""
    requests_of, limits_of = dict(container.resources.requests), dict(container.resources.limits)
    claimed = claimed_by_container(pod, container.name)
    aggregate.add(requests_of, {name: claimed[name] for name in claimed if name in requests_of})
    aggregate.add(limits_of, {name: claimed[name] for name in claimed if name in limits_of and limits_of[name].sign})
    return requests_of, limits_of


def all_containers(pod: Pod) -> tuple[Container, ...]:
    """Return init containers and containers."""
    return (*pod.spec.init_containers, *pod.spec.containers)


def _claimed(pod: Pod) -> Amounts:
    amounts: Amounts = {}
    for status, mapped, per_pod, per_container in _entries(pod):
        aggregate.add(amounts, mapped)
        aggregate.add(amounts, per_pod)
        for _ in status.containers:
            aggregate.add(amounts, per_container)
    return amounts


def _entries(
    pod: Pod,
) -> Iterator[tuple[nodeallocatable.NodeAllocatableResourceClaimStatus, Amounts, Amounts, Amounts]]:
    """Yield the status of each claim with its mapped amounts and its overhead per pod and per container."""
    for status in pod.status.node_allocatable_resource_claim_statuses:
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


def _budget(stated: ResourceList) -> Amounts:
    return {name: amount for name, amount in stated.items() if requests.is_budgeted(name)}


def _memory(amounts: Amounts) -> int:
    return amounts["memory"].as_int64() if "memory" in amounts else 0
