"""Controllers of objects, and claims generated for pods and for groups of pods.

An object has at most one owner that controls it. A generated claim may be used only by the pod that controls it, or by
the pods of the PodGroup that controls it. A claim of the same name that belongs to another or an earlier pod is not the
right one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from drachma.api import meta, pod, podgroup, resourceclaim, scheme


def controller_of(controlled: meta.Object) -> meta.OwnerReference | None:
    """Return the owner that controls an object, or None."""
    for owner in controlled.metadata.owner_references:
        if owner.controller:
            return owner
    return None


def is_controlled_by(metadata: meta.ObjectMeta, uid: str) -> bool:
    """Return True if the object with this uid controls another."""
    for owner in metadata.owner_references:  # noqa: SIM110 - asked for every pod, again and again
        if owner.controller and owner.uid == uid:
            return True
    return False


def workload_reference(owner: meta.Object) -> meta.OwnerReference:
    """Return the owner reference of objects that a workload created or adopted, and that its deletion waits for."""
    kind = scheme.of(type(owner))
    return meta.OwnerReference(
        api_version=kind.api_versions[0],
        kind=kind.name,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def reference(owner: meta.Object) -> dict[str, Any]:
    """Return the owner reference of :func:`by_workload` as a document."""
    document: dict[str, Any] = msgspec.to_builtins(workload_reference(owner))
    return document


def owning_group(claim: resourceclaim.ResourceClaim) -> meta.OwnerReference | None:
    """Return the PodGroup that a claim was generated for, or None."""
    owner = controller_of(claim)
    is_group = owner is not None and owner.kind == "PodGroup" and owner.api_version.startswith("scheduling.k8s.io/")
    return owner if is_group else None


def owning_pod(claim: resourceclaim.ResourceClaim) -> meta.OwnerReference | None:
    """Return the pod that a claim was generated for, or None."""
    owner = controller_of(claim)
    return owner if owner is not None and (owner.api_version, owner.kind) == ("v1", "Pod") else None


def consumer_reference(owner: pod.Pod | podgroup.PodGroup) -> meta.OwnerReference:
    """Return the owner reference of a claim generated for a pod or a group."""
    kind = scheme.of(type(owner))
    return meta.OwnerReference(
        api_version=kind.api_versions[0],
        kind=kind.name,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
    )


def problem(claim: resourceclaim.ResourceClaim, user: pod.Pod) -> str:
    """Return why a claim was generated neither for a pod nor for the group that it names; empty if it was."""
    if is_controlled_by(claim.metadata, user.metadata.uid):
        return ""
    group = user.spec.scheduling_group
    if group is not None and group.pod_group_name:
        owner = owning_group(claim)
        if owner is not None and owner.name == group.pod_group_name:
            return ""
    return (
        f"ResourceClaim {claim.metadata.namespace}/{claim.metadata.name} was not created for "
        f"Pod {user.metadata.namespace}/{user.metadata.name} (Pod is not owner)"
    )
