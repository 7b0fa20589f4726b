"""Who controls an object, and whether a claim was made for a pod.

An object has at most one owner that controls it. A generated claim is used only by the pod that controls it: another
claim of the same name, or an earlier pod's, is not the one that was meant.
"""

from __future__ import annotations

from typing import Any

import msgspec

from drachma.api import meta, pod, resourceclaim, scheme


def controller_of(controlled: meta.Object) -> meta.OwnerReference | None:
    """The owner that controls an object."""
    for owner in controlled.metadata.owner_references:
        if owner.controller:
            return owner
    return None


def is_controlled_by(metadata: meta.ObjectMeta, uid: str) -> bool:
    """Whether the object with this uid controls another."""
    for owner in metadata.owner_references:  # noqa: SIM110 - asked for every pod, again and again
        if owner.controller and owner.uid == uid:
            return True
    return False


def by_workload(owner: meta.Object) -> meta.OwnerReference:
    """What objects say that a workload made or adopted, and that its deletion waits for."""
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
    """The same as a document has it."""
    document: dict[str, Any] = msgspec.to_builtins(by_workload(owner))
    return document


def owning_pod(claim: resourceclaim.ResourceClaim) -> meta.OwnerReference | None:
    """The pod that a claim was generated for."""
    owner = controller_of(claim)
    return owner if owner is not None and (owner.api_version, owner.kind) == ("v1", "Pod") else None


def by_pod(owner: pod.Pod) -> meta.OwnerReference:
    """What a claim says that is made for a pod."""
    return meta.OwnerReference(
        api_version="v1", kind="Pod", name=owner.metadata.name, uid=owner.metadata.uid, controller=True
    )


def problem(claim: resourceclaim.ResourceClaim, of: pod.Pod) -> str:
    """Why a claim is not the one that was made for a pod; empty if it is."""
    if is_controlled_by(claim.metadata, of.metadata.uid):
        return ""
    return (
        f"ResourceClaim {claim.metadata.namespace}/{claim.metadata.name} was not created for "
        f"Pod {of.metadata.namespace}/{of.metadata.name} (Pod is not owner)"
    )
