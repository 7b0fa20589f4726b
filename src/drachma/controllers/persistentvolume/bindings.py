"""Decisions about claims and volumes. Pure, with upstream's messages.

A binding is written in four steps: reference and phase of the volume, then of the claim. After a crash the remaining
steps are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from drachma.api import persistentvolume, persistentvolumeclaim, storageclass
from drachma.claims import volumeclaims

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume
StorageClass = storageclass.StorageClass

PENDING: Final = "Pending"
BOUND: Final = "Bound"
LOST: Final = "Lost"
RELEASED: Final = "Released"

PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"


class Bind(msgspec.Struct, frozen=True):
    """Bind a volume to the claim, or continue the binding."""

    volume: Volume


class Classify(msgspec.Struct, frozen=True):
    """Set the default storage class of a claim."""

    storage_class: str


class Provision(msgspec.Struct, frozen=True):
    """Have an external provisioner create a volume for the claim."""

    provisioner: str


class Wait(msgspec.Struct, frozen=True):
    """The claim has no volume, or has lost it; an event with the reason, if any, says why."""

    phase: str = PENDING
    reason: str = ""
    message: str = ""
    is_warning: bool = False


Fate: TypeAlias = Bind | Classify | Provision | Wait


def decide_claim(claim: Claim, volumes: Mapping[str, Volume], classes: Mapping[str, StorageClass]) -> Fate:
    """Decide about a claim."""
    if volumeclaims.BIND_COMPLETED in claim.metadata.annotations:
        return _decide_bound(claim, volumes)
    if claim.spec.volume_name:
        return _decide_named(claim, volumes.get(claim.spec.volume_name))
    return _decide_free(claim, volumes.values(), classes)


def _decide_bound(claim: Claim, volumes: Mapping[str, Volume]) -> Fate:
    if not claim.spec.volume_name:
        return _lost("ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
    volume = volumes.get(claim.spec.volume_name)
    if volume is None:
        return _lost("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
    reference = volume.spec.claim_ref
    if reference is None or reference.uid == claim.metadata.uid:
        return Bind(volume)
    return _lost("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")


def _lost(reason: str, message: str) -> Wait:
    return Wait(LOST, reason, message, is_warning=True)


def _decide_named(claim: Claim, volume: Volume | None) -> Fate:
    """Decide about a claim whose user named a volume."""
    if volume is None:
        return Wait()
    if volumeclaims.is_bound_to(volume, claim):
        return Bind(volume)
    if volume.spec.claim_ref is not None:
        message = f'volume "{volume.metadata.name}" already bound to a different claim.'
        return Wait(PENDING, "FailedBinding", message, is_warning=True)
    problem = _mismatch(volume, claim)
    if not problem:
        return Bind(volume)
    message = f'Cannot bind to requested volume "{volume.metadata.name}": {problem}'
    return Wait(PENDING, "VolumeMismatch", message, is_warning=True)


def _decide_free(claim: Claim, volumes: Iterable[Volume], classes: Mapping[str, StorageClass]) -> Fate:
    name = persistentvolumeclaim.class_of(claim)
    storage_class = classes.get(name)
    is_delayed = storage_class is not None and storage_class.volume_binding_mode == storageclass.WAIT_FOR_FIRST_CONSUMER
    # With WaitForFirstConsumer, the scheduler sets the reference of the volume.
    candidates = (
        each
        for each in volumes
        if (volumeclaims.is_bound_to(each, claim) if is_delayed or each.spec.claim_ref is not None else True)
        and volumeclaims.suits(each, claim)
    )
    volume = volumeclaims.smallest(claim, sorted(candidates, key=lambda each: each.metadata.name))
    if volume is not None:
        return Bind(volume)
    if claim.spec.storage_class_name is None and not name and (default := volumeclaims.default_class(classes.values())):
        return Classify(default)
    if is_delayed and volumeclaims.SELECTED_NODE not in claim.metadata.annotations:
        return Wait(PENDING, "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
    if not name:
        message = "no persistent volumes available for this claim and no storage class is set"
        return Wait(PENDING, "FailedBinding", message)
    if storage_class is None:
        message = f'storageclass.storage.k8s.io "{name}" not found'
        return Wait(PENDING, "ProvisioningFailed", message, is_warning=True)
    if storage_class.provisioner == storageclass.NO_PROVISIONER:
        message = "storageclass has no provisioner: no persistent volumes available for this claim"
        return Wait(PENDING, "FailedBinding", message)
    return Provision(storage_class.provisioner)


def _mismatch(volume: Volume, claim: Claim) -> str:
    """Return the reason for which a claim cannot have the volume that it names, or an empty text."""
    requested, offered = claim.spec.resources.requests.get("storage"), volume.spec.capacity.get("storage")
    if requested is not None and (offered is None or offered < requested):
        return "requested PV is too small"
    if volume.spec.storage_class_name != persistentvolumeclaim.class_of(claim):
        return "storageClassName does not match"
    if (claim.spec.volume_mode or "Filesystem") != (volume.spec.volume_mode or "Filesystem"):
        return "incompatible volumeMode"
    if (claim.spec.volume_attributes_class_name or "") != (volume.spec.volume_attributes_class_name or ""):
        return "volumeAttributesClassName does not match"
    if not set(claim.spec.access_modes) <= set(volume.spec.access_modes):
        return "incompatible accessMode"
    return ""


class VolumePhase(msgspec.Struct, frozen=True):
    """Phase of a volume. If ``is_let_go``, its reference to a claim is removed first."""

    phase: str
    is_let_go: bool = False


def decide_volume(volume: Volume, claim: Claim | None) -> VolumePhase | None:
    """Decide about a volume, or return None while its claim decides. ``claim`` has the name that it refers to."""
    reference = volume.spec.claim_ref
    if reference is None or not reference.uid:
        return VolumePhase(persistentvolume.AVAILABLE)
    if claim is None or claim.metadata.uid != reference.uid:
        return VolumePhase(RELEASED)
    if not claim.spec.volume_name:
        return None
    if claim.spec.volume_name == volume.metadata.name:
        return VolumePhase(BOUND)
    is_own = PROVISIONED_BY in volume.metadata.annotations and volume.spec.persistent_volume_reclaim_policy == "Delete"
    return VolumePhase(RELEASED) if is_own else VolumePhase(persistentvolume.AVAILABLE, is_let_go=True)
