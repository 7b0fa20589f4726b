"""Claim assignments: what a pod's claims come to on the node that was chosen for it (Reserve), for PreBind to write."""

from __future__ import annotations

from typing import Final, NamedTuple

from drachma.accounting import policies
from drachma.api import nodeallocatable, resourceclaim
from drachma.scheduler.framework import cyclestate
from drachma.scheduler.plugins.dynamicresources import claimplan, extendedclaim, verdicts
from drachma.scheduler.snapshot import assignment, claimtracker


class ClaimAssignment(NamedTuple):
    """What has to be written for a pod's claims."""

    plan: claimplan.ClaimPlan | None = None
    allocations: tuple[assignment.Allocation, ...] = ()
    """The special claim last."""
    mappings: extendedclaim.Mappings = ()
    statuses: tuple[nodeallocatable.NodeAllocatableResourceClaimStatus, ...] = ()
    """What claims add to the pod's requests."""
    settled: policies.Settlement | None = None
    """With accounting policies: what comes out of pools."""

    def on(self, tracker: claimtracker.ClaimTracker) -> ClaimAssignment:
        """The same with claims as they are known by now, where they have the very devices that they were decided with.

        Somebody may have reserved one meanwhile, or written what was decided for a pod of the same gang.
        """
        if self.plan is None:
            return self
        claims = tuple(entry._replace(claim=_newest(entry.claim, tracker)) for entry in self.plan.claims)
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


def leave(cycle: cyclestate.CycleState, outcome: ClaimAssignment) -> None:
    """Note what a pod's claims come to."""
    cycle.write(_KEY, outcome)


def of(cycle: cyclestate.CycleState) -> ClaimAssignment:
    """What a pod's claims come to; nothing where it has none."""
    return cycle.find(_KEY) or NOTHING
