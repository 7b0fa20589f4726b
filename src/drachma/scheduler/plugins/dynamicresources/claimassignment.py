"""Claim assignments: what a pod's claims come to on the node that was chosen for it (Reserve), for PreBind to write."""

from __future__ import annotations

from typing import Final, NamedTuple

from drachma.accounting import policies
from drachma.api import nodeallocatable
from drachma.scheduler.framework import cyclestate
from drachma.scheduler.plugins.dynamicresources import claimplan, extendedclaim, verdicts
from drachma.scheduler.snapshot import assignment


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


NOTHING: Final = ClaimAssignment()
_KEY: Final = cyclestate.Key[ClaimAssignment](verdicts.NAME)


def leave(cycle: cyclestate.CycleState, outcome: ClaimAssignment) -> None:
    """Note what a pod's claims come to."""
    cycle.write(_KEY, outcome)


def of(cycle: cyclestate.CycleState) -> ClaimAssignment:
    """What a pod's claims come to; nothing where it has none."""
    return cycle.find(_KEY) or NOTHING
