"""Claim plans: the claims of a pod before any node is filtered (PreFilter), and their result on its node (Reserve).

Rejected in upstream's words: claims that are missing or being allocated for another pod, classes that do not exist, and
requests of an unknown type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec import structs

from drachma.accounting import policies
from drachma.api import gates, nodeallocatable, pod, resourceclaim
from drachma.claims import podclaims, reservation
from drachma.scheduler.framework import cyclestate, verdict
from drachma.scheduler.plugins.dynamicresources import extendedclaim, verdicts
from drachma.scheduler.snapshot import Snapshot, assignment, claimtracker, delegation, podinfo
from drachma.scheduler.snapshot import devices as snapshotdevices


class ClaimPlan(NamedTuple):
    """Claims of a pod, in the order of its spec."""

    claims: tuple[podclaims.PodClaim, ...]
    special: resourceclaim.ResourceClaim | None = None
    """Claim for extended resources: a draft, or one that an earlier attempt left behind."""
    extended: tuple[str, ...] = ()
    """Extended resources that the pod requests."""

    @property
    def unallocated(self) -> tuple[resourceclaim.ResourceClaim, ...]:
        """Claims to allocate, each once, without the special one."""
        by_uid = {entry.claim.metadata.uid: entry.claim for entry in self.claims}
        return tuple(claim for claim in by_uid.values() if claim.status.allocation is None)

    @property
    def is_stale(self) -> bool:
        """True if the special claim was left behind, and must be deleted before the pod can be scheduled."""
        return self.special is not None and bool(self.special.spec.devices.requests)


def make(
    info: podinfo.PodInfo, snapshot: Snapshot, enabled: gates.Gates, *, new_uid: Callable[[], str]
) -> ClaimPlan | verdict.Rejection | None:
    """Return the plan for a pod, a rejection, or None for a pod without claims."""
    devices = snapshot.devices
    try:
        entries = (
            podclaims.resolve(info.pod, devices.claims, snapshot.claim_group(info.pod))
            if info.pod.spec.resource_claims
            else []
        )
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
        problem = _problem(entry.claim, devices, enabled) or _crowding(entry.claim, info.pod)
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
            if enabled.on(gates.Gate.ABSENT_CLASS_ALTERNATIVES):
                # Without any class the message names the first one that is missing.
                existing = [entry for entry in classes if not entry[1] or devices.classes.get(entry[1]) is not None]
                classes = existing or classes
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


def _crowding(claim: resourceclaim.ResourceClaim, user: pod.Pod) -> str:
    """Return a message if no place is left among the consumers of a claim.

    Differs from upstream, which finds a node for the pod, fails to reserve the claim, and starts again.
    """
    if not reservation.is_full(claim) or reservation.is_reserved_for(claim, user):
        return ""
    label = f"{claim.metadata.namespace}/{claim.metadata.name}"
    return f"resource claim {label} has {reservation.MOST_CONSUMERS} consumers, which is the maximum"


class ClaimAssignment(NamedTuple):
    """Everything to write for a pod's claims."""

    plan: ClaimPlan | None = None
    allocations: tuple[assignment.Allocation, ...] = ()
    """Allocations, the special claim last."""
    mappings: extendedclaim.Mappings = ()
    statuses: tuple[nodeallocatable.NodeAllocatableResourceClaimStatus, ...] = ()
    """Additions of the claims to the pod's requests."""
    settled: policies.Settlement | None = None
    """With accounting policies: amounts that come out of pools."""

    def on(self, tracker: claimtracker.ClaimTracker) -> ClaimAssignment:
        """Return the assignment with the newest state of claims that have the same devices as at the decision.

        Another pod may have reserved a claim meanwhile, or a pod of the same gang may have been written.
        """
        if self.plan is None:
            return self
        claims = tuple(structs.replace(entry, claim=_newest(entry.claim, tracker)) for entry in self.plan.claims)
        return self._replace(plan=self.plan._replace(claims=claims))


def _newest(claim: resourceclaim.ResourceClaim, tracker: claimtracker.ClaimTracker) -> resourceclaim.ResourceClaim:
    newest = tracker.get(claim.metadata.namespace, claim.metadata.name)
    if newest is None or newest.metadata.uid != claim.metadata.uid:
        return claim
    before, now = claim.status.allocation, newest.status.allocation
    if before is None or now is None:
        return newest if before is now else claim
    is_same = (before.devices, before.node_selector) == (now.devices, now.node_selector)
    return newest if is_same else claim


NOTHING: Final = ClaimAssignment()
_KEY: Final = cyclestate.Key[ClaimAssignment](verdicts.NAME)


def write_assignment(cycle: cyclestate.CycleState, outcome: ClaimAssignment) -> None:
    """Keep the assignment for PreBind."""
    cycle.write(_KEY, outcome)


def read_assignment(cycle: cyclestate.CycleState) -> ClaimAssignment:
    """Return the assignment of a pod; an empty one for a pod without claims."""
    return cycle.find(_KEY) or NOTHING
