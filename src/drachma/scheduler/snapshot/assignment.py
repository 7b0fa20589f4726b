"""Assignments: a pod that goes to a node, and what it takes there. Made by decisions, counted by snapshots."""

from __future__ import annotations

from typing import NamedTuple

from drachma.accounting import ledger
from drachma.api import pod, resourceclaim


class Allocation(NamedTuple):
    """A claim that is to be allocated, and what it gets."""

    claim: resourceclaim.ResourceClaim
    result: resourceclaim.AllocationResult


class Assignment(NamedTuple):
    """A pod on its way to a node."""

    pod: pod.Pod
    node: str
    demand: ledger.Demand
    allocations: tuple[Allocation, ...] = ()
    """What is allocated for it, and not written yet."""
    volumes: tuple[tuple[str, str], ...] = ()
    """Persistent volumes by name, each with the uid of the claim that gets it."""
    delegated: frozenset[str] = frozenset()
    """Resources among its requests that devices stand for on this node."""
