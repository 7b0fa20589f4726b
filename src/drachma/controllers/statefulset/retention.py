"""Owners of the volume claims of a stateful set: claims are deleted with the set, with surplus pods, or kept. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from drachma.api import meta, persistentvolumeclaim, pod, statefulset
from drachma.claims import ownership
from drachma.controllers.statefulset import ordinals

Set = statefulset.StatefulSet
Claim = persistentvolumeclaim.PersistentVolumeClaim

_DELETE: Final = "Delete"
_SET: Final = ("apps/v1", "StatefulSet")
_POD: Final = ("v1", "Pod")


def is_kept(stateful_set: Set) -> bool:
    """Return True if claims outlive surplus pods."""
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    return policy is None or policy.when_scaled != _DELETE


def is_of_earlier_pod(claim: Claim, name: str) -> bool:
    """Return True if a claim belongs to a previous pod of this name, and is about to be deleted with it."""
    return _is_stale(claim, _POD, name, "")


def has_other_controller(claim: Claim, owner: Set, pod: pod.Pod) -> bool:
    """Return True if another object controls a claim, or a previous set or pod of the name."""
    if not _is_owned_by_set(owner) and is_kept(owner):
        return False
    for each in claim.metadata.owner_references:
        if _names(each, _SET, owner.metadata.name):
            if each.uid != owner.metadata.uid:
                return True
        elif _names(each, _POD, pod.metadata.name):
            if each.uid != pod.metadata.uid:
                return True
        elif each.controller:
            return True
    return False


def is_right(claim: Claim, owner: Set, pod: pod.Pod) -> bool:
    """Return True if a claim has the owners of its policy. A claim of a previous set or pod is left alone."""
    set_uid, pod_uid = owner.metadata.uid, pod.metadata.uid
    if _is_stale(claim, _SET, owner.metadata.name, set_uid) or _is_stale(claim, _POD, pod.metadata.name, pod_uid):
        return True
    by_set, by_pod = _has_owner(claim, set_uid), _has_owner(claim, pod_uid)
    if has_other_controller(claim, owner, pod):
        return not (by_set or by_pod)
    ours = [each for each in claim.metadata.owner_references if each.uid in (set_uid, pod_uid)]
    if any(not each.controller for each in ours):
        return False
    owner_uid = _owner_uid(owner, pod)
    return by_set == (owner_uid == set_uid) and by_pod == (owner_uid == pod_uid)


def owners(claim: Claim, owner: Set, pod: pod.Pod) -> list[dict[str, Any]]:
    """Return the owners of a claim as a document."""
    foreign = [
        each
        for each in claim.metadata.owner_references
        if not _names(each, _SET, owner.metadata.name) and not _names(each, _POD, pod.metadata.name)
    ]
    documents: list[dict[str, Any]] = msgspec.to_builtins(foreign)
    if has_other_controller(claim, owner, pod):
        return documents
    owner_uid = _owner_uid(owner, pod)
    if owner_uid == owner.metadata.uid:
        documents.append(ownership.reference(owner))
    elif owner_uid == pod.metadata.uid:
        documents.append(ownership.reference(pod))
    return documents


def _owner_uid(owner: Set, pod: pod.Pod) -> str:
    """Return the uid of the owner of a claim, or an empty text if the claim is kept."""
    is_too_many = ordinals.ordinal(pod) not in ordinals.numbers(owner)
    if is_too_many and not is_kept(owner):
        return pod.metadata.uid
    return owner.metadata.uid if _is_owned_by_set(owner) else ""


def _is_owned_by_set(stateful_set: Set) -> bool:
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    return policy is not None and policy.when_deleted == _DELETE


def _is_stale(claim: Claim, kind: tuple[str, str], name: str, uid: str) -> bool:
    for each in claim.metadata.owner_references:
        if _names(each, kind, name):
            return each.uid != uid
    return False


def _names(reference: meta.OwnerReference, kind: tuple[str, str], name: str) -> bool:
    return (reference.api_version, reference.kind, reference.name) == (*kind, name)


def _has_owner(claim: Claim, uid: str) -> bool:
    return any(each.uid == uid for each in claim.metadata.owner_references)
