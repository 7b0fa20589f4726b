"""Assignments: a pod, its node, and the resources that it takes there. Made by decisions, counted by snapshots."""

from __future__ import annotations

from typing import NamedTuple

from drachma.accounting import ledger
from drachma.api import pod, resourceclaim


class Allocation(NamedTuple):
    """Claim with a new allocation."""

    claim: resourceclaim.ResourceClaim
    result: resourceclaim.AllocationResult


class Assignment(NamedTuple):
    """Pod with its node."""

    pod: pod.Pod
    node: str
    demand: ledger.Demand
    allocations: tuple[Allocation, ...] = ()
    """Allocations for the pod that are not written yet."""
    volumes: tuple[tuple[str, str], ...] = ()
    """Persistent volumes by name, each with the uid of its claim."""
    delegated: frozenset[str] = frozenset()
    """Requested resources that devices provide on this node."""
