"""How pods and claims belong together: which claim an entry of a pod's spec means, whose it is, and who needs it.

Pure functions with upstream's rules and texts (KEP-4381, "Ephemeral vs. persistent ResourceClaims lifecycle").
"""

from typing import Final

import msgspec

from drachma import errors
from drachma.api import meta, pod, resourceclaim

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps a claim while it is, or might be, allocated."""

POD_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"
"""On a generated claim: the entry in the pod's spec that it was made for."""

EXTENDED_RESOURCE_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
"""On the claim that a scheduler makes for a pod's extended resources."""

_FINISHED: Final = ("Succeeded", "Failed")


class Missing(msgspec.Struct, frozen=True):
    """The claim is still to be made."""


class NotNeeded(msgspec.Struct, frozen=True):
    """It was decided that the pod does without this claim."""


class Named(msgspec.Struct, frozen=True):
    """The claim has this name; a generated one must be checked for its owner before it is used."""

    name: str
    is_generated: bool


def resolve(of: pod.Pod, entry: pod.PodResourceClaim) -> Named | NotNeeded | Missing:
    """Which claim an entry of the pod's ``spec.resourceClaims`` means.

    Raises:
        errors.ReconcileError: the entry has neither of the two fields that are known here.
    """
    if entry.resource_claim_name is not None:
        return Named(entry.resource_claim_name, is_generated=False)
    if entry.resource_claim_template_name is None:
        place = f"{of.metadata.namespace}/{of.metadata.name}"
        raise errors.ReconcileError(
            f'pod "{place}", spec.resourceClaim "{entry.name}": none of the supported fields are set'
        )
    for status in of.status.resource_claim_statuses:
        if status.name == entry.name:
            name = status.resource_claim_name
            return NotNeeded() if name is None else Named(name, is_generated=True)
    return Missing()


def claim_names(of: pod.Pod) -> list[str]:
    """The names of all claims that the pod is known to use, those for extended resources last."""
    names = []
    for entry in of.spec.resource_claims:
        try:
            found = resolve(of, entry)
        except errors.ReconcileError:
            continue
        if isinstance(found, Named):
            names.append(found.name)
    extended = of.status.extended_resource_claim_status
    if extended is not None:
        names.append(extended.resource_claim_name)
    return names


def controller_of(known: meta.Object) -> meta.OwnerReference | None:
    """The owner that controls an object."""
    for owner in known.metadata.owner_references:
        if owner.controller:
            return owner
    return None


def owning_pod(claim: resourceclaim.ResourceClaim) -> meta.OwnerReference | None:
    """The pod that a claim was generated for."""
    for owner in claim.metadata.owner_references:
        if owner.controller and owner.api_version == "v1" and owner.kind == "Pod":
            return owner
    return None


def ownership_problem(claim: resourceclaim.ResourceClaim, of: pod.Pod) -> str:
    """Why a claim is not the one that was made for a pod; empty if it is."""
    controller = controller_of(claim)
    if controller is not None and controller.uid == of.metadata.uid:
        return ""
    place = f"{claim.metadata.namespace}/{claim.metadata.name}"
    return (
        f"ResourceClaim {place} was not created for Pod {of.metadata.namespace}/{of.metadata.name} (Pod is not owner)"
    )


def is_reserved_for(claim: resourceclaim.ResourceClaim, of: pod.Pod) -> bool:
    """Whether a pod is among those that may use a claim."""
    uid = of.metadata.uid
    return any(reference.uid == uid for reference in claim.status.reserved_for)


def consumer(of: pod.Pod) -> resourceclaim.ResourceClaimConsumerReference:
    """A pod as user of a claim."""
    return resourceclaim.ResourceClaimConsumerReference(resource="pods", name=of.metadata.name, uid=of.metadata.uid)


def is_done(of: pod.Pod) -> bool:
    """Whether it is certain that nothing of the pod runs or ever will: it has ended, or goes before it had a node."""
    if of.status.phase in _FINISHED:
        return True
    return of.metadata.deletion_timestamp is not None and not of.spec.node_name


def uses_claims(of: pod.Pod) -> bool:
    """Whether the pod has anything to do with claims."""
    return bool(of.spec.resource_claims) or of.status.extended_resource_claim_status is not None
