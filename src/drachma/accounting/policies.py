"""Accounting policies: how what devices are is settled with what containers request (KEP-5517, future enhancements).

Behind a gate of its own, off by default. Without it every mapped amount is added once per claim. With it, every mapped
resource of a device has a policy, its own or that of its class, and:

- AddPerClaim adds the amount once, however many containers use the claim;
- AddPerReference adds it for each container that uses the claim;
- Max lets it stand for the container's own request where it is larger;
- ConsumeFrom reserves it on the node as a pool, once per claim, from which containers of one or several pods draw
  their requests.

Refused, as a text: a mapping without a policy; Max or ConsumeFrom of several drivers, or both of them, for the same
resource in one container; requests beyond what is left of a pool.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from drachma.accounting import resourcenames
from drachma.api import pod


class Policy(enum.StrEnum):
    """How a mapped amount counts."""

    ADD_PER_CLAIM = "AddPerClaim"
    ADD_PER_REFERENCE = "AddPerReference"
    MAX = "Max"
    CONSUME_FROM = "ConsumeFrom"


class Share(NamedTuple):
    """What the devices of one claim are, of one driver and under one policy."""

    claim: str
    driver: str
    resource: str
    policy: Policy
    nanos: int
    containers: tuple[str, ...]
    """The containers of the pod that use the claim."""


class PoolUse(NamedTuple):
    """A pool that a pod draws from: what it holds in all, and what the pod takes of it."""

    claim: str
    held: resourcenames.Amounts
    taken: resourcenames.Amounts


class Settlement(NamedTuple):
    """What comes out for a pod: what each claim adds to its requests, and the pools it draws from."""

    added: dict[str, resourcenames.Nanos]
    pools: tuple[PoolUse, ...]
    drawn: resourcenames.Nanos
    """Requests of containers that come out of pools, and not out of the node."""


def policy(stated: str | None, of_class: str | None, *, subject: str) -> Policy | str:
    """The policy of a mapping: the device's own, or that of its class; a text where there is none to go by."""
    text = stated or of_class
    if not text:
        return f"{subject}: neither the device nor its class has an accounting policy"
    try:
        return Policy(text)
    except ValueError:
        return f'{subject}: unknown accounting policy "{text}"'


def problem(shares: Sequence[Share]) -> str:
    """Why policies do not go together in some container; empty if they do."""
    for (container, resource), group in sorted(_by_container(shares).items()):
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


def settle(of: pod.Pod, shares: Sequence[Share]) -> Settlement:
    """What a pod's claims come to beside what its containers request."""
    added: dict[str, resourcenames.Nanos] = {}
    own = _requests(of)
    for share in shares:
        if share.policy is Policy.ADD_PER_CLAIM:
            _add(added, share.claim, share.resource, nanos=share.nanos)
        elif share.policy is Policy.ADD_PER_REFERENCE:
            _add(added, share.claim, share.resource, nanos=share.nanos * len(share.containers))
    drawn: resourcenames.Nanos = {}
    taken: dict[str, resourcenames.Nanos] = {}
    for (container, resource), group in _by_container(shares).items():
        requested = own.get((container, resource), 0)
        largest = [share for share in group if share.policy is Policy.MAX]
        more = sum(share.nanos for share in largest) - requested
        if largest and more > 0:
            _add(added, largest[0].claim, resource, nanos=more)
        pools = [share for share in group if share.policy is Policy.CONSUME_FROM]
        if pools and requested:
            _add(taken, pools[0].claim, resource, nanos=requested)
            drawn[resource] = drawn.get(resource, 0) + requested
    held: dict[str, resourcenames.Nanos] = {}
    for share in shares:
        if share.policy is Policy.CONSUME_FROM:
            _add(held, share.claim, share.resource, nanos=share.nanos)
    pools_used = tuple(
        PoolUse(claim, resourcenames.amounts(amounts), resourcenames.amounts(taken.get(claim, {})))
        for claim, amounts in sorted(held.items())
    )
    return Settlement(added, pools_used, drawn)


def _requests(of: pod.Pod) -> dict[tuple[str, str], int]:
    return {
        (container.name, name): amount.nanos
        for container in (*of.spec.init_containers, *of.spec.containers)
        for name, amount in container.resources.requests.items()
    }


def _by_container(shares: Iterable[Share]) -> dict[tuple[str, str], list[Share]]:
    groups: dict[tuple[str, str], list[Share]] = {}
    for share in shares:
        for container in share.containers:
            groups.setdefault((container, share.resource), []).append(share)
    return groups


def _add(to: dict[str, resourcenames.Nanos], claim: str, resource: str, *, nanos: int) -> None:
    amounts = to.setdefault(claim, {})
    amounts[resource] = amounts.get(resource, 0) + nanos
