"""Reservations: the pods that may use a claim, by its ``reservedFor``."""

from __future__ import annotations

from typing import Final

from drachma.api import pod, resourceclaim

MOST_CONSUMERS: Final = 256
"""Largest number of consumers of a claim."""


def is_full(claim: resourceclaim.ResourceClaim) -> bool:
    """Return True if a claim has as many consumers as it may have."""
    return len(claim.status.reserved_for) >= MOST_CONSUMERS


def is_reserved_for(claim: resourceclaim.ResourceClaim, user: pod.Pod) -> bool:
    """Return True if a pod is among the consumers of a claim."""
    reserved = claim.status.reserved_for
    return bool(reserved) and any(consumer.uid == user.metadata.uid for consumer in reserved)


def consumer(user: pod.Pod) -> resourceclaim.ResourceClaimConsumerReference:
    """Return a pod as consumer of a claim."""
    return resourceclaim.ResourceClaimConsumerReference(resource="pods", name=user.metadata.name, uid=user.metadata.uid)


def frees_devices(old: resourceclaim.ResourceClaim | None, new: resourceclaim.ResourceClaim | None) -> bool:
    """Return True if a change of a claim frees devices, which may help any pod."""
    if old is None or old.status.allocation is None:
        return False
    return new is None or new.status.allocation is None


def is_pod(reference: resourceclaim.ResourceClaimConsumerReference) -> bool:
    """Return True if a consumer is a pod. The life of other consumers is not known here."""
    return not reference.api_group and reference.resource == "pods"
