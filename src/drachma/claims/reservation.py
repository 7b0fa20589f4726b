"""Reservations: which pods may use a claim, as its ``reservedFor`` says."""

from __future__ import annotations

from drachma.api import pod, resourceclaim


def is_reserved_for(claim: resourceclaim.ResourceClaim, of: pod.Pod) -> bool:
    """Whether a pod is among the consumers of a claim."""
    reserved = claim.status.reserved_for
    return bool(reserved) and any(consumer.uid == of.metadata.uid for consumer in reserved)


def consumer(of: pod.Pod) -> resourceclaim.ResourceClaimConsumerReference:
    """A pod as consumer of a claim."""
    return resourceclaim.ResourceClaimConsumerReference(resource="pods", name=of.metadata.name, uid=of.metadata.uid)


def frees_devices(old: resourceclaim.ResourceClaim | None, new: resourceclaim.ResourceClaim | None) -> bool:
    """Whether a change of a claim gives devices back, which may help any pod."""
    if old is None or old.status.allocation is None:
        return False
    return new is None or new.status.allocation is None


def is_pod(reference: resourceclaim.ResourceClaimConsumerReference) -> bool:
    """Whether a consumer is a pod at all; what others are, and when they go, only they know."""
    return not reference.api_group and reference.resource == "pods"
