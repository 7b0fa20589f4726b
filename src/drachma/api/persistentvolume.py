"""PersistentVolume: the fields that binding and scheduling read. A partial view."""

from collections.abc import Mapping
from typing import Final

from drachma.api import event, meta, nodeselector
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, ZERO_TEXT, Struct
from drachma.values import quantity

AVAILABLE: Final = "Available"
"""Phase of a volume without a claim."""


class VolumeNodeAffinity(Struct, frozen=True, kw_only=True):
    """Nodes that can use a volume."""

    required: nodeselector.NodeSelector | None = None


class CSIVolumeSource(Struct, frozen=True, kw_only=True):
    """Volume of a storage driver."""

    driver: str = ZERO_TEXT
    volume_handle: str = ZERO_TEXT


class PersistentVolumeSpec(Struct, frozen=True, kw_only=True):
    """Capacity, access modes, class and claim of a volume."""

    capacity: Mapping[str, quantity.Quantity] = ABSENT_MAP
    access_modes: tuple[str, ...] = ABSENT_TUPLE
    claim_ref: event.ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ABSENT_TEXT
    storage_class_name: str = ABSENT_TEXT
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIVolumeSource | None = None


class PersistentVolumeStatus(Struct, frozen=True, kw_only=True):
    """Phase of a volume."""

    phase: str = ABSENT_TEXT


class PersistentVolume(meta.Object, frozen=True, kw_only=True):
    """Core PersistentVolume, cluster-scoped; a partial view."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()
