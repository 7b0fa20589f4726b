"""Claim plans: what a pod's claims mean before any node is looked at (PreFilter).

Refused, as a rejection with upstream's words: claims that are missing or being allocated for another pod, classes that
do not exist, requests of a type that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from drachma.api import gates, resourceclaim
from drachma.claims import podclaims
from drachma.scheduler.framework import verdict
from drachma.scheduler.plugins.dynamicresources import extendedclaim, verdicts
from drachma.scheduler.snapshot import delegation, podinfo
from drachma.scheduler.snapshot import devices as snapshotdevices


class ClaimPlan(NamedTuple):
    """The claims of a pod, those of its spec in their order."""

    claims: tuple[podclaims.PodClaim, ...]
    special: resourceclaim.ResourceClaim | None = None
    """The claim for extended resources: a draft, or one that is left over from an earlier attempt."""
    extended: tuple[str, ...] = ()
    """The extended resources that the pod requests."""

    @property
    def unallocated(self) -> tuple[resourceclaim.ResourceClaim, ...]:
        """The claims that have to be allocated, each once, without the special one."""
        by_uid = {entry.claim.metadata.uid: entry.claim for entry in self.claims}
        return tuple(claim for claim in by_uid.values() if claim.status.allocation is None)

    @property
    def is_stale(self) -> bool:
        """Whether the special claim is left over, and has to go before the pod can be scheduled."""
        return self.special is not None and bool(self.special.spec.devices.requests)


def make(
    info: podinfo.PodInfo, devices: snapshotdevices.Devices, enabled: gates.Gates, *, new_uid: Callable[[], str]
) -> ClaimPlan | verdict.Rejection | None:
    """The plan for a pod, why there is none, or None for a pod without claims."""
    try:
        entries = podclaims.resolve(info.pod, devices.claims) if info.pod.spec.resource_claims else []
    except podclaims.MissingError as error:
        return verdicts.rejection(str(error))
    special: resourceclaim.ResourceClaim | None = None
    extended: tuple[str, ...] = ()
    if delegation.extended(info, devices) and enabled.on(gates.Gate.EXTENDED_RESOURCE):
        special = devices.claims.special_claim(info.uid) or extendedclaim.draft(info.pod, uid=new_uid())
        extended = info.extended_resources
    if not entries and special is None:
        return None
    for entry in entries:
        problem = _problem(entry.claim, devices, enabled)
        if problem:
            return verdicts.rejection(problem)
    return ClaimPlan(tuple(entries), special, extended)


def _problem(claim: resourceclaim.ResourceClaim, devices: snapshotdevices.Devices, enabled: gates.Gates) -> str:
    label = f"{claim.metadata.namespace}/{claim.metadata.name}"
    if devices.claims.pending(claim.metadata.uid) is not None:
        return f"resource claim {label} is in the process of being allocated"
    if claim.status.allocation is not None:
        return ""
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            classes: Sequence[tuple[str, str]] = ((request.name, request.exactly.device_class_name),)
        elif request.first_available:
            if not enabled.on(gates.Gate.PRIORITIZED_LIST):
                return (
                    f"resource claim {label}, request {request.name}: has subrequests, "
                    "but the DRAPrioritizedList feature is disabled"
                )
            classes = [(f"{request.name}/{sub.name}", sub.device_class_name) for sub in request.first_available]
        else:
            return f"resource claim {label}, request {request.name}: unknown request type"
        for name, class_name in classes:
            if not class_name:
                raise verdict.AbortError(
                    f'running PreFilter plugin "{verdicts.NAME}": request {name}: unsupported request type'
                )
            if devices.classes.get(class_name) is None:
                return f"request {name}: device class {class_name} does not exist"
    return ""
