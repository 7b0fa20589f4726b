"""Accounting policies: how mapped devices combine with requests of containers (KEP-5517, future enhancements).

Behind a gate of their own, off by default. Without it every mapped amount is added once per claim. With it, every
mapped resource of a device has a policy, its own or that of its class:

- AddPerClaim adds the amount once, however many containers of one or several pods use the claim;
- AddPerReference adds it for each container that uses the claim, in every pod;
- Max replaces the container's own request if it is larger;
- ConsumeFrom reserves it on the node as a pool, once per claim, from which containers of one or several pods draw
  their requests.

Problems are returned as texts: a mapping without a policy; Max or ConsumeFrom of several drivers, or both of them, for
the same resource in one container; requests beyond what is left of a pool.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from drachma.accounting import resourcenames
from drachma.api import pod


class Policy(enum.StrEnum):
    """Policy of a mapped amount."""

    ADD_PER_CLAIM = "AddPerClaim"
    ADD_PER_REFERENCE = "AddPerReference"
    MAX = "Max"
    CONSUME_FROM = "ConsumeFrom"


SHAREABLE: Final = frozenset({Policy.ADD_PER_CLAIM, Policy.ADD_PER_REFERENCE, Policy.CONSUME_FROM})
"""Policies under which several pods may use a claim, because each pod's part of it is known."""

_ONCE: Final = "/once"
"""End of the name of the pool for amounts that count once per claim. No claim has such a name."""


class Share(NamedTuple):
    """Mapped devices of one claim, of one driver and under one policy."""

    claim: str
    driver: str
    resource: str
    policy: Policy
    nanos: int
    containers: tuple[str, ...]
    """Containers of the pod that use the claim."""


class PoolUse(NamedTuple):
    """Pool that a pod draws from: its total, and the pod's part. The node provides the total once for all pods."""

    claim: str
    held: resourcenames.Amounts
    taken: resourcenames.Amounts


class Settlement(NamedTuple):
    """Result for a pod: additions of each claim to its requests, and the pools that it draws from."""

    added: dict[str, resourcenames.Nanos]
    pools: tuple[PoolUse, ...]
    drawn: resourcenames.Nanos
    """Requests of containers that come out of pools, and not out of the node."""


def policy(stated: str | None, of_class: str | None, *, subject: str) -> Policy | str:
    """Return the policy of a mapping: the device's own, or that of its class, or a problem if there is none."""
    text = stated or of_class
    if not text:
        return f"{subject}: neither the device nor its class has an accounting policy"
    try:
        return Policy(text)
    except ValueError:
        return f'{subject}: unknown accounting policy "{text}"'


def problem(shares: Sequence[Share]) -> str:
    """Return why policies contradict each other in a container; empty if they do not."""
    for (container, resource), group in sorted(_group_by_container(shares).items()):
        subject = f"container {container}, resource {resource}"
        exclusive = [share for share in group if share.policy in (Policy.MAX, Policy.CONSUME_FROM)]
        policies = {share.policy for share in exclusive}
        drivers = sorted({share.driver for share in exclusive})
        if len(policies) > 1:
            return f"{subject}: claims with accounting policies Max and ConsumeFrom cannot be combined"
        if len(drivers) > 1:
            return (
                f"{subject}: claims with accounting policy {exclusive[0].policy} must be of one driver, "
                f"not of {' and '.join(drivers)}"
            )
    return ""


def settle(requesting: pod.Pod, shares: Sequence[Share]) -> Settlement:
    """Return the settlement of a pod's claims with the requests of its containers."""
    added: dict[str, resourcenames.Nanos] = {}
    own = _requests(requesting)
    drawn: resourcenames.Nanos = {}
    reserved: dict[str, resourcenames.Nanos] = {}
    for share in shares:
        if share.policy is Policy.ADD_PER_CLAIM:
            # Every pod shows the amount, and the node provides it once: it is a pool that nothing else comes out of.
            _add(added, share.claim, share.resource, nanos=share.nanos)
            _add(reserved, f"{share.claim}{_ONCE}", share.resource, nanos=share.nanos)
            drawn[share.resource] = drawn.get(share.resource, 0) + share.nanos
        elif share.policy is Policy.ADD_PER_REFERENCE:
            _add(added, share.claim, share.resource, nanos=share.nanos * len(share.containers))
    drawn_from: dict[str, resourcenames.Nanos] = {}
    for (container, resource), group in _group_by_container(shares).items():
        requested = own.get((container, resource), 0)
        largest = [share for share in group if share.policy is Policy.MAX]
        more = sum(share.nanos for share in largest) - requested
        if largest and more > 0:
            _add(added, largest[0].claim, resource, nanos=more)
        pools = [share for share in group if share.policy is Policy.CONSUME_FROM]
        if pools and requested:
            _add(drawn_from, pools[0].claim, resource, nanos=requested)
            drawn[resource] = drawn.get(resource, 0) + requested
    for share in shares:
        if share.policy is Policy.CONSUME_FROM:
            _add(reserved, share.claim, share.resource, nanos=share.nanos)
    pools_used = tuple(
        PoolUse(claim, resourcenames.amounts(amounts), resourcenames.amounts(drawn_from.get(claim, {})))
        for claim, amounts in sorted(reserved.items())
    )
    return Settlement(added, pools_used, drawn)


def _requests(requesting: pod.Pod) -> dict[tuple[str, str], int]:
    return {
        (container.name, name): amount.nanos
        for container in (*requesting.spec.init_containers, *requesting.spec.containers)
        for name, amount in container.resources.requests.items()
    }


def _group_by_container(shares: Iterable[Share]) -> dict[tuple[str, str], list[Share]]:
    groups: dict[tuple[str, str], list[Share]] = {}
    for share in shares:
        for container in share.containers:
            groups.setdefault((container, share.resource), []).append(share)
    return groups


def _add(to: dict[str, resourcenames.Nanos], claim: str, resource: str, *, nanos: int) -> None:
    amounts = to.setdefault(claim, {})
    amounts[resource] = amounts.get(resource, 0) + nanos
