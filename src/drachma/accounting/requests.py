"""What a pod asks for in all: containers, init containers, sidecars, overhead, pod-level resources, and its claims.

The one calculation behind the ledger, the fit check, scoring and the check of pod-level budgets. Amounts are exact
here (nanos); :func:`drachma.accounting.resourcenames.amounts` rounds them for the ledger.

What devices of claims mean for node-allocatable resources (KEP-5517) adds to what the containers come to
(:mod:`drachma.accounting.aggregate`), once per claim. Where the pod states a resource as a whole, that is its budget
and everything else is inside. Overhead comes on top.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drachma.accounting import aggregate, resourcenames
from drachma.api import nodeallocatable, pod
from drachma.values import names, quantity

ClaimStatuses = tuple[nodeallocatable.NodeAllocatableResourceClaimStatus, ...]

DEFAULT_CPU: Final = 100 * 10**6
"""What a container without a cpu request counts for when nodes are scored, in nanos; likewise for memory."""

DEFAULT_MEMORY: Final = 200 * 1024 * 1024 * 10**9

_DEFAULTS: Final[resourcenames.Nanos] = {resourcenames.CPU: DEFAULT_CPU, resourcenames.MEMORY: DEFAULT_MEMORY}
_NOTHING: Final[resourcenames.Nanos] = {}


def total(requesting: pod.Pod, *, claims: ClaimStatuses = ()) -> resourcenames.Nanos:
    """All that the pod needs of a node; ``claims`` is what its claims add."""
    amounts = containers(requesting, claims=claims)
    _take_whole(requesting, amounts)
    return amounts


def for_scoring(requesting: pod.Pod, *, claims: ClaimStatuses = ()) -> resourcenames.Nanos:
    """The same, with defaults for containers that do not say how much cpu or memory they need."""
    defaults = _DEFAULTS
    if has_budget(requesting):
        stated = total(requesting, claims=claims)
        defaults = {name: amount for name, amount in _DEFAULTS.items() if name not in stated}
    amounts = _together(requesting, field="requests", defaults=defaults)
    if claims:
        aggregate.add(amounts, of_claims(claims))
    _take_whole(requesting, amounts)
    return amounts


def containers(requesting: pod.Pod, *, claims: ClaimStatuses = ()) -> resourcenames.Nanos:
    """What the containers request together, with what claims add; without budget and overhead."""
    amounts = _together(requesting, field="requests", defaults=_NOTHING)
    if claims:
        aggregate.add(amounts, of_claims(claims))
    return amounts


def container_limits(requesting: pod.Pod, *, claims: ClaimStatuses = ()) -> resourcenames.Nanos:
    """The containers' limits together. Claims count where there is a limit at all, and always for huge pages."""
    amounts = _together(requesting, field="limits", defaults=_NOTHING)
    for name, amount in of_claims(claims).items():
        if name in amounts or names.is_huge_page_resource(name):
            amounts[name] = amounts.get(name, 0) + amount
    return amounts


def of_claims(statuses: ClaimStatuses) -> resourcenames.Nanos:
    """What claims add to a pod: mapped amounts, and overhead once for the pod and once for each container."""
    amounts: resourcenames.Nanos = {}
    for status in statuses:
        for name, mapped in status.mapped().items():
            amounts[name] = amounts.get(name, 0) + mapped.nanos
        for overhead in status.overhead:
            amount = _zero_or(overhead.per_pod) + _zero_or(overhead.per_container) * len(status.containers)
            amounts[overhead.name] = amounts.get(overhead.name, 0) + amount
    return amounts


def of_container(statuses: ClaimStatuses, container: str) -> resourcenames.Nanos:
    """What the claims that one container uses add to it."""
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
    """Whether a resource can be stated for the pod as a whole."""
    return name in (resourcenames.CPU, resourcenames.MEMORY) or names.is_huge_page_resource(name)


def has_budget(requesting: pod.Pod) -> bool:
    """Whether the pod states any request as a whole."""
    whole = requesting.spec.resources
    return whole is not None and any(map(is_budgeted, whole.requests))


def _together(requesting: pod.Pod, *, field: str, defaults: resourcenames.Nanos) -> resourcenames.Nanos:
    return aggregate.together(requesting.spec, lambda container: _of(container, field=field, defaults=defaults))


def _of(container: pod.Container, *, field: str, defaults: resourcenames.Nanos) -> resourcenames.Nanos:
    stated = container.resources.requests if field == "requests" else container.resources.limits
    return {**defaults, **_nanos(stated)} if defaults else _nanos(stated)


def _take_whole(requesting: pod.Pod, amounts: resourcenames.Nanos) -> None:
    """Take over what is stated for the pod as a whole: its budget, and its overhead on top."""
    whole = requesting.spec.resources
    if whole is not None:
        amounts.update((name, amount.nanos) for name, amount in whole.requests.items() if is_budgeted(name))
    if requesting.spec.overhead:
        aggregate.add(amounts, _nanos(requesting.spec.overhead))


def _nanos(stated: Mapping[str, quantity.Quantity]) -> resourcenames.Nanos:
    return {name: amount.nanos for name, amount in stated.items()}


def _zero_or(amount: quantity.Quantity | None) -> int:
    return 0 if amount is None else amount.nanos
