"""Who owns the volume claims of a stateful set, so that they go with it, with a pod that is too many, or stay. Pure."""

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


def is_kept(of: Set) -> bool:
    """Whether claims outlive the pods that are too many."""
    policy = of.spec.persistent_volume_claim_retention_policy
    return policy is None or policy.when_scaled != _DELETE


def is_of_earlier_pod(claim: Claim, name: str) -> bool:
    """Whether a claim belongs to a pod of a name that is to be made anew, with whose predecessor it is about to go."""
    return _is_stale(claim, _POD, name, "")


def has_other_controller(claim: Claim, owner: Set, of: pod.Pod) -> bool:
    """Whether something else has a claim for itself, or an earlier set or pod of the name."""
    if not _is_owned_by_set(owner) and is_kept(owner):
        return False
    for each in claim.metadata.owner_references:
        if _names(each, _SET, owner.metadata.name):
            if each.uid != owner.metadata.uid:
                return True
        elif _names(each, _POD, of.metadata.name):
            if each.uid != of.metadata.uid:
                return True
        elif each.controller:
            return True
    return False


def is_right(claim: Claim, owner: Set, of: pod.Pod) -> bool:
    """Whether a claim is owned as the policy of its set says; one of an earlier set or pod is left alone."""
    set_uid, pod_uid = owner.metadata.uid, of.metadata.uid
    if _is_stale(claim, _SET, owner.metadata.name, set_uid) or _is_stale(claim, _POD, of.metadata.name, pod_uid):
        return True
    by_set, by_pod = _has_owner(claim, set_uid), _has_owner(claim, pod_uid)
    if has_other_controller(claim, owner, of):
        return not (by_set or by_pod)
    ours = [each for each in claim.metadata.owner_references if each.uid in (set_uid, pod_uid)]
    if any(not each.controller for each in ours):
        return False
    wanted = _owner_uid(owner, of)
    return by_set == (wanted == set_uid) and by_pod == (wanted == pod_uid)


def owners(claim: Claim, owner: Set, of: pod.Pod) -> list[dict[str, Any]]:
    """The owners that a claim is to have, as its document has them."""
    others = [
        each
        for each in claim.metadata.owner_references
        if not _names(each, _SET, owner.metadata.name) and not _names(each, _POD, of.metadata.name)
    ]
    documents: list[dict[str, Any]] = msgspec.to_builtins(others)
    if has_other_controller(claim, owner, of):
        return documents
    wanted = _owner_uid(owner, of)
    if wanted == owner.metadata.uid:
        documents.append(ownership.reference(owner))
    elif wanted == of.metadata.uid:
        documents.append(ownership.reference(of))
    return documents


def _owner_uid(owner: Set, of: pod.Pod) -> str:
    """Who is to own a claim; nobody where it is to stay."""
    is_too_many = ordinals.ordinal(of) not in ordinals.numbers(owner)
    if is_too_many and not is_kept(owner):
        return of.metadata.uid
    return owner.metadata.uid if _is_owned_by_set(owner) else ""


def _is_owned_by_set(of: Set) -> bool:
    policy = of.spec.persistent_volume_claim_retention_policy
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
