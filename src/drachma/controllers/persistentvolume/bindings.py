"""What is to become of a claim, or of a volume, as both are: pure, with upstream's words.

A binding is written in four steps, the volume's reference and phase first, then the claim's; whoever comes after a
crash finds some of them done, and does the rest.
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
    """The claim gets a volume, or is to say that it has it."""

    volume: Volume


class Classify(msgspec.Struct, frozen=True):
    """The claim gets the class that those without one get."""

    storage_class: str


class Provision(msgspec.Struct, frozen=True):
    """Somebody outside is to make a volume for the claim."""

    provisioner: str


class Wait(msgspec.Struct, frozen=True):
    """The claim has no volume yet, or none any more; an event says why, where there is a reason."""

    phase: str = PENDING
    reason: str = ""
    message: str = ""
    is_warning: bool = False


Fate: TypeAlias = Bind | Classify | Provision | Wait


def of_claim(claim: Claim, volumes: Mapping[str, Volume], classes: Mapping[str, StorageClass]) -> Fate:
    """What is to become of a claim."""
    if volumeclaims.BIND_COMPLETED in claim.metadata.annotations:
        return _of_bound(claim, volumes)
    if claim.spec.volume_name:
        return _of_named(claim, volumes.get(claim.spec.volume_name))
    return _of_free(claim, volumes.values(), classes)


def _of_bound(claim: Claim, volumes: Mapping[str, Volume]) -> Fate:
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


def _of_named(claim: Claim, volume: Volume | None) -> Fate:
    """A claim whose user said which volume it is to get."""
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


def _of_free(claim: Claim, volumes: Iterable[Volume], classes: Mapping[str, StorageClass]) -> Fate:
    name = persistentvolumeclaim.class_of(claim)
    chosen = classes.get(name)
    is_delayed = chosen is not None and chosen.volume_binding_mode == storageclass.WAIT_FOR_FIRST_CONSUMER
    # Where a pod decides, the scheduler says so in the volume.
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
    if chosen is None:
        message = f'storageclass.storage.k8s.io "{name}" not found'
        return Wait(PENDING, "ProvisioningFailed", message, is_warning=True)
    if chosen.provisioner == storageclass.NO_PROVISIONER:
        message = "storageclass has no provisioner: no persistent volumes available for this claim"
        return Wait(PENDING, "FailedBinding", message)
    return Provision(chosen.provisioner)


def _mismatch(volume: Volume, claim: Claim) -> str:
    """Why a volume cannot be had by a claim that asks for it by name; empty where it can."""
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
    """A volume is in a phase; where it is let go, its reference to a claim goes first."""

    phase: str
    is_let_go: bool = False


def of_volume(volume: Volume, claim: Claim | None) -> VolumePhase | None:
    """What is to become of a volume; ``claim`` has the name that it refers to. None while its claim decides."""
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
