"""Decisions: what scheduling a pod can come to. Made by :mod:`drachma.scheduler.cycle`, carried out by the binder."""

from __future__ import annotations

from typing import NamedTuple

from drachma.accounting import policies
from drachma.api import nodeallocatable, resourceclaim
from drachma.scheduler import podinfo, verdict
from drachma.scheduler.dynamicresources import claimplan, extendedclaim


class Diagnosis(NamedTuple):
    """Why a pod fits nowhere."""

    node_count: int
    before: verdict.Rejection | None = None
    """What was wrong before any node was looked at."""
    rejections: tuple[tuple[verdict.Rejection, int], ...] = ()
    """Every rejection with the set of nodes that it is about."""
    absent: tuple[verdict.Rejection, int] | None = None
    """Nodes that were never looked at: the rejection they share, and their number."""

    @property
    def plugins(self) -> frozenset[str]:
        """The plugins that rejected the pod; with none of them the pod is just tried again."""
        found = {rejection.plugin for rejection, _ in self.rejections}
        if self.before is not None:
            found.add(self.before.plugin)
        if self.absent is not None:
            found.add(self.absent[0].plugin)
        return frozenset(found)

    @property
    def resolvable(self) -> int:
        """The nodes on which evicting pods could help."""
        found = 0
        for rejection, nodes in self.rejections:
            if rejection.is_resolvable:
                found |= nodes
        return found


class Allocation(NamedTuple):
    """A claim that is to be allocated, and what it gets."""

    claim: resourceclaim.ResourceClaim
    result: resourceclaim.AllocationResult


class Placed(NamedTuple):
    """The pod goes to a node."""

    info: podinfo.PodInfo
    node: str
    plan: claimplan.ClaimPlan | None = None
    allocations: tuple[Allocation, ...] = ()
    """What has to be written for claims, the special one last."""
    mappings: extendedclaim.Mappings = ()
    statuses: tuple[nodeallocatable.NodeAllocatableResourceClaimStatus, ...] = ()
    """What claims add to the pod's requests."""
    settled: policies.Settlement | None = None
    """With accounting policies: what comes out of pools."""
    feasible: int = 1
    """How many nodes would have done."""


class Unfit(NamedTuple):
    """The pod fits nowhere at the moment."""

    info: podinfo.PodInfo
    diagnosis: Diagnosis
    plan: claimplan.ClaimPlan | None = None
    unavailable: tuple[int, ...] = ()
    """Claims of the plan that are allocated and in the way."""


class Aborted(NamedTuple):
    """Something went wrong; the pod is tried again after a pause."""

    info: podinfo.PodInfo
    message: str


Decision = Placed | Unfit | Aborted
