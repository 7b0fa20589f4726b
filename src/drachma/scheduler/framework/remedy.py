"""Remedies: what may help a pod that fits nowhere. PostFilter plugins propose them; the scheduler carries them out."""

from __future__ import annotations

from typing import NamedTuple

from drachma.api import pod, resourceclaim


class Preemptor(NamedTuple):
    """Whom pods are evicted for."""

    kind: str
    """In upstream's words: ``pod``, or ``podgroup``."""
    uid: str


class Eviction(NamedTuple):
    """Less important pods have to go, the most important first."""

    node: str
    """From where; for a gang that is the cluster."""
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
