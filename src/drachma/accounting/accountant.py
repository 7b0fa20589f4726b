"""The accountant: what claims mean for a pod's place on a node, as statuses for the pod and as a demand for the ledger.

Asked when nodes are filtered, when a pod is assumed, and again for pods that are on nodes already: accounting policies
(behind their gate) are not written anywhere, so after a restart they are looked up once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from drachma.accounting import footprint, ledger, policies, requests
from drachma.api import deviceclass, gates, pod, resourceclaim, resourceslice
from drachma.claims import identity, podclaims
from drachma.values import quantity

Meanings = Mapping[str, tuple[str, footprint.Footprint]]
"""Footprints by claim name, each with the claim's name in the pod."""


class Account(NamedTuple):
    """What a pod's claims come to."""

    statuses: requests.ClaimStatuses = ()
    settled: policies.Settlement | None = None
    problem: str = ""


NOTHING: Final = Account()


class Classes(Protocol):
    """Where device classes are looked up."""

    def get(self, name: str) -> deviceclass.DeviceClass | None: ...


class Devices(Protocol):
    """All that has to be known about devices."""

    @property
    def classes(self) -> Classes: ...
    @property
    def claims(self) -> podclaims.Claims: ...
    def find(self, result: resourceclaim.DeviceRequestAllocationResult) -> resourceslice.Device | None: ...


class Accountant:
    """Settles claims with pods."""

    def __init__(self, devices: Devices, enabled: gates.Gates) -> None:
        self._devices: Final = devices
        self._is_on: Final = enabled.on(gates.Gate.NODE_ALLOCATABLE_RESOURCES)
        self.has_policies: Final = self._is_on and enabled.on(gates.Gate.ACCOUNTING_POLICIES)

    def meaning(
        self,
        claim: resourceclaim.ResourceClaim,
        allocation: resourceclaim.AllocationResult,
        *,
        find: footprint.FindDevice | None = None,
    ) -> footprint.Footprint:
        """What the devices of a claim mean; raises AllocationError where that cannot be told."""
        policy_of = self._policies(claim) if self.has_policies else None
        label = identity.label(claim.metadata)
        return footprint.of(allocation, find or self._devices.find, claim=label, policy_of=policy_of)

    def account(self, of: pod.Pod, meanings: Meanings) -> Account:
        """What a pod's claims come to, or why they cannot be accounted for."""
        if not self.has_policies:
            return Account(footprint.statuses(of, meanings))
        problems = [mark.problem for _, mark in meanings.values() if mark.problem]
        shares = [
            policies.Share(claim, driver, resource, policy, amount.nanos, footprint.users(of, entry) if entry else ())
            for claim, (entry, mark) in sorted(meanings.items())
            for driver, resource, policy, amount in mark.shares
        ]
        problem = problems[0] if problems else policies.problem(shares)
        if problem:
            return Account(problem=problem)
        settled = policies.settle(of, shares)
        marks = {
            claim: (entry, mark._replace(mapped=_mapped(settled.added.get(claim, {}), mark)))
            for claim, (entry, mark) in meanings.items()
        }
        namespace = of.metadata.namespace
        pools = tuple(use._replace(claim=f"{namespace}/{use.claim}") for use in settled.pools)
        return Account(footprint.statuses(of, marks), settled._replace(pools=pools))

    def demand(self, bound: pod.Pod) -> ledger.Demand:
        """What a pod on a node takes of it."""
        statuses = bound.status.node_allocatable_resource_claim_statuses if self._is_on else ()
        if not self.has_policies or not bound.spec.resource_claims:
            return ledger.demand(bound, claims=statuses)
        return ledger.demand(bound, claims=statuses, settled=self.account(bound, self._meanings(bound)).settled)

    def may_be_shared(self, claim: resourceclaim.ResourceClaim, allocation: resourceclaim.AllocationResult) -> bool:
        """Whether several pods may use a claim whose devices are a node's own resources: only out of pools."""
        if not self.has_policies:
            return False
        shares = self.meaning(claim, allocation).shares
        return bool(shares) and all(policy is policies.Policy.CONSUME_FROM for _, _, policy, _ in shares)

    def _meanings(self, bound: pod.Pod) -> Meanings:
        try:
            entries = podclaims.resolve(bound, self._devices.claims)
        except podclaims.MissingError:
            return {}
        return {
            entry.claim.metadata.name: (entry.name, self.meaning(entry.claim, entry.claim.status.allocation))
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


def _mapped(added: Mapping[str, int], mark: footprint.Footprint) -> tuple[tuple[str, quantity.Quantity], ...]:
    families = {name: amount.format for name, amount in mark.mapped}
    return tuple((name, footprint.spelled(nanos, families[name])) for name, nanos in sorted(added.items()) if nanos)


def class_name(claim: resourceclaim.ResourceClaim, request: str) -> str:
    """The class of a request, or of one of its alternatives (``request/subrequest``); empty if there is none."""
    name, _, sub = request.partition("/")
    for entry in claim.spec.devices.requests:
        if entry.name == name:
            if entry.exactly is not None:
                return entry.exactly.device_class_name
            return next((each.device_class_name for each in entry.first_available if each.name == sub), "")
    return ""
