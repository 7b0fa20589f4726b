"""Total requests of a pod: containers, init containers, sidecars, overhead, pod-level resources, and its claims.

This is the one calculation behind the ledger, the fit check, scoring and the check of pod-level budgets. Amounts are
exact here (nanos); :func:`drachma.accounting.resourcenames.amounts` rounds them for the ledger.

The footprint of claims (KEP-5517) is added to the total of the containers (:mod:`drachma.accounting.aggregate`), once
per claim. If the pod states a resource as a whole, that is its budget, and everything else is inside. Overhead comes on
top.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drachma.accounting import aggregate, resourcenames
from drachma.api import nodeallocatable, pod
from drachma.values import names, quantity

ClaimStatuses = tuple[nodeallocatable.NodeAllocatableResourceClaimStatus, ...]

DEFAULT_CPU: Final = 100 * 10**6
"""Assumed cpu request for scoring, in nanos, of a container without one; likewise for memory."""

DEFAULT_MEMORY: Final = 200 * 1024 * 1024 * 10**9

_DEFAULTS: Final[resourcenames.Nanos] = {resourcenames.CPU: DEFAULT_CPU, resourcenames.MEMORY: DEFAULT_MEMORY}
_NOTHING: Final[resourcenames.Nanos] = {}


def total(requesting: pod.Pod, *, claims: ClaimStatuses = ()) -> resourcenames.Nanos:
    """Return everything that the pod needs of a node; ``claims`` are the additions of its claims."""
    amounts = containers(requesting, claims=claims)
    _take_whole(requesting, amounts)
    return amounts


def scoring_total(requesting: pod.Pod, *, claims: ClaimStatuses = ()) -> resourcenames.Nanos:
    """Return the total with defaults for containers without a cpu or memory request."""
    defaults = _DEFAULTS
    if has_budget(requesting):
        stated = total(requesting, claims=claims)
        defaults = {name: amount for name, amount in _DEFAULTS.items() if name not in stated}
    amounts = _together(requesting, field="requests", defaults=defaults)
    if claims:
        aggregate.add(amounts, claim_additions(claims))
    _take_whole(requesting, amounts)
    return amounts


def containers(requesting: pod.Pod, *, claims: ClaimStatuses = ()) -> resourcenames.Nanos:
    """Return the requests of the containers with the additions of claims, without budget and overhead."""
    amounts = _together(requesting, field="requests", defaults=_NOTHING)
    if claims:
        aggregate.add(amounts, claim_additions(claims))
    return amounts


def container_limits(requesting: pod.Pod, *, claims: ClaimStatuses = ()) -> resourcenames.Nanos:
    """Return the limits of the containers. Claims count if there is a limit at all, and always for huge pages."""
    amounts = _together(requesting, field="limits", defaults=_NOTHING)
    for name, amount in claim_additions(claims).items():
        if name in amounts or names.is_huge_page_resource(name):
            amounts[name] = amounts.get(name, 0) + amount
    return amounts


def claim_additions(statuses: ClaimStatuses) -> resourcenames.Nanos:
    """Return the additions of claims: mapped amounts, and overhead for the pod and for each container."""
    amounts: resourcenames.Nanos = {}
    for status in statuses:
        for name, mapped in status.mapped().items():
            amounts[name] = amounts.get(name, 0) + mapped.nanos
        for overhead in status.overhead:
            amount = _zero_or(overhead.per_pod) + _zero_or(overhead.per_container) * len(status.containers)
            amounts[overhead.name] = amounts.get(overhead.name, 0) + amount
    return amounts


def container_additions(statuses: ClaimStatuses, container: str) -> resourcenames.Nanos:
    """Return the additions of the claims that one container uses."""
    amounts: resourcenames.Nanos = {}
    for status in statuses:
        if container not in status.containers:
            continue
        for name, mapped in status.mapped().items():
            amounts[name] = amounts.get(name, 0) + mapped.nanos
        for overhead in status.overhead:
            amount = _zero_or(overhead.per_pod) + _zero_or(overhead.per_container)
            amounts[overhead.name] = amounts.get(overhead.name, 0) + amount
    return amounts


def is_budgeted(name: str) -> bool:
    """Return True if a resource can be stated for the pod as a whole."""
    return name in (resourcenames.CPU, resourcenames.MEMORY) or names.is_huge_page_resource(name)


def has_budget(requesting: pod.Pod) -> bool:
    """Return True if the pod states any request as a whole."""
    pod_resources = requesting.spec.resources
    return pod_resources is not None and any(map(is_budgeted, pod_resources.requests))


def _together(requesting: pod.Pod, *, field: str, defaults: resourcenames.Nanos) -> resourcenames.Nanos:
    return aggregate.together(requesting.spec, lambda container: _of(container, field=field, defaults=defaults))


def _of(container: pod.Container, *, field: str, defaults: resourcenames.Nanos) -> resourcenames.Nanos:
    stated = container.resources.requests if field == "requests" else container.resources.limits
    return {**defaults, **_nanos(stated)} if defaults else _nanos(stated)


def _take_whole(requesting: pod.Pod, amounts: resourcenames.Nanos) -> None:
    """Apply pod-level resources and overhead to amounts in place."""
    pod_resources = requesting.spec.resources
    if pod_resources is not None:
        amounts.update((name, amount.nanos) for name, amount in pod_resources.requests.items() if is_budgeted(name))
    if requesting.spec.overhead:
        aggregate.add(amounts, _nanos(requesting.spec.overhead))


def _nanos(stated: Mapping[str, quantity.Quantity]) -> resourcenames.Nanos:
    return {name: amount.nanos for name, amount in stated.items()}


def _zero_or(amount: quantity.Quantity | None) -> int:
    return 0 if amount is None else amount.nanos


def budget_problem(subject: pod.Pod, claims: ClaimStatuses) -> str:
    """Return why the budget is too small; empty if it suffices, or if there is none."""
    pod_resources = subject.spec.resources
    if pod_resources is None or not claims:
        return ""
    requested = containers(subject, claims=claims)
    for name, budget in pod_resources.requests.items():
        if is_budgeted(name) and requested.get(name, 0) > budget.nanos:
            return (
                f"pod level request for {name} is insufficient to cover the aggregated container "
                "and node-allocatable DRA requests"
            )
    if not pod_resources.limits:
        return ""
    for name, limit in container_limits(subject, claims=claims).items():
        most = pod_resources.limits.get(name)
        if names.is_huge_page_resource(name) and most is not None and limit > most.nanos:
            return (
                f"pod level limit for {name} is insufficient to cover the aggregated container "
                "and node-allocatable DRA limits"
            )
    for container in subject.spec.containers:
        added = container_additions(claims, container.name)
        for name, amount in container.resources.limits.items():
            most = pod_resources.limits.get(name)
            if names.is_huge_page_resource(name) or most is None:
                continue
            if amount.nanos + added.get(name, 0) > most.nanos:
                return (
                    f"pod level limit for {name} is insufficient to cover the limit "
                    f"and DRA overhead for container {container.name}"
                )
    return ""
