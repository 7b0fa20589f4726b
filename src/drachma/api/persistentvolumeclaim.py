"""PersistentVolumeClaim: the fields that quotas and binding read. A partial view."""

from collections.abc import Mapping
from typing import Final

from drachma.api import meta
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, ZERO_TEXT, Struct
from drachma.values import quantity

CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
"""Old annotation with the storage class; it still counts."""


class VolumeResourceRequirements(Struct, frozen=True, kw_only=True):
    """Requested and maximum storage."""

    limits: Mapping[str, quantity.Quantity] = ABSENT_MAP
    requests: Mapping[str, quantity.Quantity] = ABSENT_MAP


class PersistentVolumeClaimSpec(Struct, frozen=True, kw_only=True):
    """Requested storage."""

    access_modes: tuple[str, ...] = ABSENT_TUPLE
    selector: meta.LabelSelector | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    volume_name: str = ABSENT_TEXT
    volume_mode: str | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None


class ModifyVolumeStatus(Struct, frozen=True, kw_only=True):
    """Progress of a change of the volume's attributes class."""

    target_volume_attributes_class_name: str = ABSENT_TEXT


class PersistentVolumeClaimCondition(Struct, frozen=True, kw_only=True):
    """One observed aspect of the claim's state."""

    type: str = ZERO_TEXT
    status: str = ZERO_TEXT
    last_transition_time: meta.Time | None = None
    reason: str = ABSENT_TEXT
    message: str = ABSENT_TEXT


class PersistentVolumeClaimStatus(Struct, frozen=True, kw_only=True):
    """Provided storage."""

    phase: str = ABSENT_TEXT
    allocated_resources: Mapping[str, quantity.Quantity] = ABSENT_MAP
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: ModifyVolumeStatus | None = None
    conditions: tuple[PersistentVolumeClaimCondition, ...] = ABSENT_TUPLE


class PersistentVolumeClaim(meta.Object, frozen=True, kw_only=True):
    """Core PersistentVolumeClaim, namespaced; a partial view."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


def class_of(claim: PersistentVolumeClaim) -> str:
    """Return the storage class of a claim; empty if it names none."""
    return claim.metadata.annotations.get(CLASS_ANNOTATION, claim.spec.storage_class_name or "")
