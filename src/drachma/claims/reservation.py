"""Reservations: the consumers that may use a claim, by its ``reservedFor``.

A consumer is a pod, or a PodGroup for a claim that the pods of the group share (KEP-5729).
"""

from __future__ import annotations

from typing import Final

from drachma.api import pod, podgroup, resourceclaim

Consumer = pod.Pod | podgroup.PodGroup

_GROUPS: Final = ("scheduling.k8s.io", "podgroups")

MOST_CONSUMERS: Final = 256
"""Largest number of consumers of a claim."""


def is_full(claim: resourceclaim.ResourceClaim) -> bool:
    """Return True if a claim has as many consumers as it may have."""
    return len(claim.status.reserved_for) >= MOST_CONSUMERS


def is_reserved_for(claim: resourceclaim.ResourceClaim, user: Consumer) -> bool:
    """Return True if a pod or a group is among the consumers of a claim."""
    reserved = claim.status.reserved_for
    return bool(reserved) and any(consumer.uid == user.metadata.uid for consumer in reserved)


def may_be_used_by(claim: resourceclaim.ResourceClaim, user: pod.Pod) -> bool:
    """Return True if a claim is reserved for a pod, or for the group that the pod names."""
    group = user.spec.scheduling_group
    name = None if group is None else group.pod_group_name
    return is_reserved_for(claim, user) or (
        name is not None and any(is_group(each) and each.name == name for each in claim.status.reserved_for)
    )


def consumer(user: Consumer) -> resourceclaim.ResourceClaimConsumerReference:
    """Return a pod or a group as consumer of a claim."""
    name, uid = user.metadata.name, user.metadata.uid
    if isinstance(user, podgroup.PodGroup):
        api_group, resource = _GROUPS
        return resourceclaim.ResourceClaimConsumerReference(api_group=api_group, resource=resource, name=name, uid=uid)
    return resourceclaim.ResourceClaimConsumerReference(resource="pods", name=name, uid=uid)


def frees_devices(old: resourceclaim.ResourceClaim | None, new: resourceclaim.ResourceClaim | None) -> bool:
    """Return True if a change of a claim frees devices, which may help any pod."""
    if old is None or old.status.allocation is None:
        return False
    return new is None or new.status.allocation is None


def is_pod(reference: resourceclaim.ResourceClaimConsumerReference) -> bool:
    """Return True if a consumer is a pod."""
    return not reference.api_group and reference.resource == "pods"


def is_group(reference: resourceclaim.ResourceClaimConsumerReference) -> bool:
    """Return True if a consumer is a PodGroup."""
    return (reference.api_group, reference.resource) == _GROUPS
