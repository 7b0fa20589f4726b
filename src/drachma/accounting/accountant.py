"""The accountant: turns the claims of a pod into statuses for the pod, and into a demand for the ledger.

It is asked when nodes are filtered, when a pod is assumed, and for pods that are on nodes. Accounting policies (behind
their gate) are not stored anywhere, so after a restart they are looked up again.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from drachma.accounting import footprint, ledger, policies, requests
from drachma.api import deviceclass, gates, pod, resourceclaim, resourceslice
from drachma.claims import identity, podclaims
from drachma.values import quantity

ClaimFootprints = Mapping[str, tuple[str, footprint.Footprint]]
"""Footprints by claim name, each with the claim's name in the pod."""


class Account(NamedTuple):
    """Result of accounting for a pod's claims."""

    statuses: requests.ClaimStatuses = ()
    settled: policies.Settlement | None = None
    problem: str = ""


NOTHING: Final = Account()

_DEMANDS: Final = 8
"""Number of demands that are kept."""


class Classes(Protocol):
    """Lookup of device classes."""

    def get(self, name: str) -> deviceclass.DeviceClass | None: ...


class Devices(Protocol):
    """Lookup of devices and their classes."""

    @property
    def classes(self) -> Classes: ...
    @property
    def claims(self) -> podclaims.Claims: ...
    def find(self, result: resourceclaim.DeviceRequestAllocationResult) -> resourceslice.Device | None: ...


class Accountant:
    """Accounts for the claims of pods."""

    def __init__(self, devices: Devices, enabled: gates.Gates) -> None:
        self._devices: Final = devices
        self._is_on: Final = enabled.on(gates.Gate.NODE_ALLOCATABLE_RESOURCES)
        self.searches: Final = self._is_on and enabled.on(gates.Gate.NODE_RESOURCE_SEARCH)
        """True if the search for devices respects the node's own resources."""
        self.has_policies: Final = self._is_on and enabled.on(gates.Gate.ACCOUNTING_POLICIES)
        self._demands: Final = _DemandMemory()

    def claim_footprint(
        self,
        claim: resourceclaim.ResourceClaim,
        allocation: resourceclaim.AllocationResult,
        *,
        find: footprint.FindDevice | None = None,
    ) -> footprint.Footprint:
        """Return the footprint of a claim's devices. Raises AllocationError if it is not known."""
        policy_of = self._policies(claim) if self.has_policies else None
        label = identity.label(claim.metadata)
        return footprint.of(
            allocation, find or self._devices.find, claim=label, policy_of=policy_of, falls_back=self.searches
        )

    def account(self, user: pod.Pod, footprints: ClaimFootprints) -> Account:
        """Return the account of a pod's claims, or the problem."""
        if not self.has_policies:
            return Account(footprint.statuses(user, footprints))
        problems = [claim_footprint.problem for _, claim_footprint in footprints.values() if claim_footprint.problem]
        shares = [
            policies.Share(claim, driver, resource, policy, amount.nanos, footprint.users(user, entry) if entry else ())
            for claim, (entry, claim_footprint) in sorted(footprints.items())
            for driver, resource, policy, amount in claim_footprint.shares
        ]
        problem = problems[0] if problems else policies.problem(shares)
        if problem:
            return Account(problem=problem)
        settled = policies.settle(user, shares)
        settled_footprints = {
            claim: (entry, claim_footprint._replace(mapped=_mapped(settled.added.get(claim, {}), claim_footprint)))
            for claim, (entry, claim_footprint) in footprints.items()
        }
        namespace = user.metadata.namespace
        pools = tuple(use._replace(claim=f"{namespace}/{use.claim}") for use in settled.pools)
        return Account(footprint.statuses(user, settled_footprints), settled._replace(pools=pools))

    def demand(self, bound: pod.Pod) -> ledger.Demand:
        """Return the demand of a pod on its node."""
        statuses = bound.status.node_allocatable_resource_claim_statuses if self._is_on else ()
        if not self.has_policies or not bound.spec.resource_claims:
            return ledger.demand(bound, claims=statuses) if statuses else self._demands.get(bound)
        return ledger.demand(bound, claims=statuses, settled=self.account(bound, self._footprints(bound)).settled)

    def may_be_shared(self, claim: resourceclaim.ResourceClaim, allocation: resourceclaim.AllocationResult) -> bool:
        """Return True if several pods may share a claim whose devices are a node's own resources."""
        if not self.has_policies:
            return False
        shares = self.claim_footprint(claim, allocation).shares
        return bool(shares) and all(policy in policies.SHAREABLE for _, _, policy, _ in shares)

    def _footprints(self, bound: pod.Pod) -> ClaimFootprints:
        try:
            entries = podclaims.resolve(bound, self._devices.claims)
        except podclaims.MissingError:
            return {}
        return {
            entry.claim.metadata.name: (entry.name, self.claim_footprint(entry.claim, entry.claim.status.allocation))
            for entry in entries
            if entry.claim.status.allocation is not None
        }

    def _policies(self, claim: resourceclaim.ResourceClaim) -> footprint.PolicyOf:
        def policy_of(
            result: resourceclaim.DeviceRequestAllocationResult, resource: str, stated: str | None
        ) -> policies.Policy | str:
            name = class_name(claim, result.request)
            device_class = self._devices.classes.get(name)
            class_policies = (
                {} if device_class is None else device_class.spec.node_allocatable_resource_accounting_policies
            )
            return policies.policy(
                stated, class_policies.get(resource), subject=f"device {result.device}, resource {resource}"
            )

        return policy_of


class _DemandMemory:
    """Demands of a few pods, for others that are alike: many pods of a cluster come from one template."""

    def __init__(self) -> None:
        self._entries: Final[collections.deque[tuple[pod.PodSpec, ledger.Demand]]] = collections.deque(maxlen=_DEMANDS)

    def get(self, bound: pod.Pod) -> ledger.Demand:
        """Return the demand of a pod whose claims add nothing."""
        spec = bound.spec
        for like, demand in self._entries:
            if (
                like.containers == spec.containers
                and like.init_containers == spec.init_containers
                and like.overhead == spec.overhead
                and like.resources == spec.resources
            ):
                return demand
        demand = ledger.demand(bound)
        self._entries.appendleft((spec, demand))
        return demand


def _mapped(
    added: Mapping[str, int], claim_footprint: footprint.Footprint
) -> tuple[tuple[str, quantity.Quantity], ...]:
    families = {name: amount.format for name, amount in claim_footprint.mapped}
    return tuple((name, footprint.to_quantity(nanos, families[name])) for name, nanos in sorted(added.items()) if nanos)


def class_name(claim: resourceclaim.ResourceClaim, request: str) -> str:
    """Return the class of a request, or of one of its alternatives (``request/subrequest``); empty if there is none."""
    name, _, sub = request.partition("/")
    for entry in claim.spec.devices.requests:
        if entry.name == name:
            if entry.exactly is not None:
                return entry.exactly.device_class_name
            return next((each.device_class_name for each in entry.first_available if each.name == sub), "")
    return ""
