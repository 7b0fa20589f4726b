"""Remedies: what may help a pod that fits nowhere. PostFilter plugins propose them; the scheduler carries them out."""

from __future__ import annotations

from typing import NamedTuple

from drachma.api import pod, resourceclaim


class Eviction(NamedTuple):
    """Less important pods have to go from a node, the most important first."""

    node: str
    victims: tuple[pod.Pod, ...]
    violations: int = 0
    """How many of them go beyond what a disruption budget allows."""


class Deallocation(NamedTuple):
    """A claim is allocated where the pod cannot use it, and nobody else does."""

    claim: resourceclaim.ResourceClaim


class ClaimDeletion(NamedTuple):
    """A claim is left over from an earlier attempt."""

    claim: resourceclaim.ResourceClaim


Remedy = Eviction | Deallocation | ClaimDeletion
