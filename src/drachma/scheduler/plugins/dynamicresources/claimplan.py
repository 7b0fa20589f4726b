"""Claim plans: what a pod's claims mean before any node is looked at (PreFilter).

Refused, as a rejection with upstream's words: claims that are missing or being allocated for another pod, classes that
do not exist, requests of a type that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from drachma.accounting import resourcenames
from drachma.api import gates, resourceclaim
from drachma.claims import podclaims
from drachma.scheduler import podinfo, verdict
from drachma.scheduler.dynamicresources import extendedclaim, inventory

_NONE: Final[frozenset[str]] = frozenset()


class ClaimPlan(NamedTuple):
    """The claims of a pod, those of its spec in their order."""

    claims: tuple[podclaims.PodClaim, ...]
    special: resourceclaim.ResourceClaim | None = None
    """The claim for extended resources: a draft, or one that is left over from an earlier attempt."""
    extended: tuple[str, ...] = ()
    """The extended resources that the pod requests."""

    @property
    def unallocated(self) -> list[resourceclaim.ResourceClaim]:
        """The claims that have to be allocated, each once, without the special one."""
        wanted = {entry.claim.metadata.uid: entry.claim for entry in self.claims}
        return [claim for claim in wanted.values() if claim.status.allocation is None]

    @property
    def is_stale(self) -> bool:
        """Whether the special claim is left over, and has to go before the pod can be scheduled."""
        return self.special is not None and bool(self.special.spec.devices.requests)


def delegated(info: podinfo.PodInfo, devices: inventory.Inventory) -> frozenset[str]:
    """The extended resources of a pod that a device class backs; a node need not have them itself."""
    if not info.demand.amounts:
        return _NONE
    return frozenset(
        name
        for name, _ in info.demand.amounts
        if resourcenames.may_be_devices(name) and devices.names.get(name) is not None
    )


def manages_node_resources(plan: ClaimPlan, devices: inventory.Inventory) -> bool:
    """Whether some class of the claims says that its devices manage the node's own resources (KEP-5517, policies)."""
    names: set[str] = set()
    for entry in plan.claims:
        for request in entry.claim.spec.devices.requests:
            wishes = (request.exactly, *request.first_available)
            names.update(wish.device_class_name for wish in wishes if wish is not None)
    found = map(devices.classes.get, names)
    return any(entry is not None and bool(entry.spec.manages_native_resources) for entry in found)


def make(
    info: podinfo.PodInfo, devices: inventory.Inventory, enabled: gates.Gates, *, new_uid: Callable[[], str]
) -> ClaimPlan | verdict.Rejection | None:
    """The plan for a pod, why there is none, or None for a pod without claims."""
    try:
        entries = podclaims.resolve(info.pod, devices.claims) if info.pod.spec.resource_claims else []
    except podclaims.MissingError as error:
        return _reject(str(error))
    special: resourceclaim.ResourceClaim | None = None
    extended: tuple[str, ...] = ()
    if delegated(info, devices) and enabled.on(gates.Gate.EXTENDED_RESOURCE):
        special = devices.claims.special_claim(info.uid) or extendedclaim.draft(info.pod, uid=new_uid())
        extended = tuple(name for name, _ in info.demand.amounts if resourcenames.may_be_devices(name))
    if not entries and special is None:
        return None
    for entry in entries:
        problem = _problem(entry.claim, devices, enabled)
        if problem:
            return _reject(problem)
    return ClaimPlan(tuple(entries), special, extended)


def _problem(claim: resourceclaim.ResourceClaim, devices: inventory.Inventory, enabled: gates.Gates) -> str:
    label = f"{claim.metadata.namespace}/{claim.metadata.name}"
    if devices.claims.pending(claim.metadata.uid) is not None:
        return f"resource claim {label} is in the process of being allocated"
    if claim.status.allocation is not None:
        return ""
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            wanted: Sequence[tuple[str, str]] = ((request.name, request.exactly.device_class_name),)
        elif request.first_available:
            if not enabled.on(gates.Gate.PRIORITIZED_LIST):
                return (
                    f"resource claim {label}, request {request.name}: has subrequests, "
                    "but the DRAPrioritizedList feature is disabled"
                )
            wanted = [(f"{request.name}/{sub.name}", sub.device_class_name) for sub in request.first_available]
        else:
            return f"resource claim {label}, request {request.name}: unknown request type"
        for name, class_name in wanted:
            if not class_name:
                raise verdict.AbortError(
                    f'running PreFilter plugin "{verdict.DYNAMIC_RESOURCES}": request {name}: unsupported request type'
                )
            if devices.classes.get(class_name) is None:
                return f"request {name}: device class {class_name} does not exist"
    return ""


def _reject(reason: str) -> verdict.Rejection:
    return verdict.Rejection(verdict.DYNAMIC_RESOURCES, (reason,))
