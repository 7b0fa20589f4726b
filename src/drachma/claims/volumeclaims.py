"""Volume claims: the volumes that suit a claim, and the one it gets.

The scheduler asks for claims that wait for a pod, the volume controller for all others. Both get the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from drachma.api import labelselectors, persistentvolume, persistentvolumeclaim, pod, storageclass
from drachma.values import labels

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""Annotation with the node on which a claim's volume is needed, for provisioners."""

BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""Annotation of volumes and claims that a controller bound to each other."""

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""Annotation of claims to which a controller has bound a volume."""

_DEFAULT: Final = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_STORAGE: Final = "storage"
_FILESYSTEM: Final = "Filesystem"


def default_class(classes: Iterable[storageclass.StorageClass]) -> str:
    """Return the class of claims that name none: the newest default class, the first by name of several."""
    defaults = [each for each in classes if any(each.metadata.annotations.get(name) == "true" for name in _DEFAULT)]
    defaults.sort(key=lambda each: each.metadata.name)
    newest = max(
        (each.metadata.creation_timestamp for each in defaults if each.metadata.creation_timestamp), default=None
    )
    return next((each.metadata.name for each in defaults if each.metadata.creation_timestamp == newest), "")


def names(user: pod.Pod) -> dict[str, bool]:
    """Return the names of a pod's volume claims, and True for each that is generated for it."""
    names: dict[str, bool] = {}
    for volume in user.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names[volume.persistent_volume_claim.claim_name] = False
        elif volume.ephemeral is not None:
            names[f"{user.metadata.name}-{volume.name}"] = True
    return names


def is_exclusive(volume: pod.Volume) -> bool:
    """Return True if a volume is a disk that pods of one node cannot share, or only as readers."""
    disks = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd)
    return any(disk is not None for disk in disks)


def is_bound_to(volume: Volume, claim: Claim) -> bool:
    """Return True if a volume names a claim. A reference without a uid is for any claim of the name."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return not reference.uid or reference.uid == claim.metadata.uid


def suits(volume: Volume, claim: Claim) -> bool:
    """Return True if a volume suits a claim, on any node."""
    requested = claim.spec.resources.requests.get(_STORAGE)
    offered = volume.spec.capacity.get(_STORAGE)
    if requested is not None and (offered is None or offered < requested):
        return False
    if (claim.spec.volume_mode or _FILESYSTEM) != (volume.spec.volume_mode or _FILESYSTEM):
        return False
    if (claim.spec.volume_attributes_class_name or "") != (volume.spec.volume_attributes_class_name or ""):
        return False
    if volume.metadata.deletion_timestamp is not None:
        return False
    if is_bound_to(volume, claim):
        return True
    selector = labels.EVERYTHING if claim.spec.selector is None else labelselectors.of(claim.spec.selector)
    return (
        volume.status.phase == persistentvolume.AVAILABLE
        and selector.matches(volume.metadata.labels)
        and volume.spec.storage_class_name == persistentvolumeclaim.class_of(claim)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def smallest(claim: Claim, volumes: Iterable[Volume]) -> Volume | None:
    """Return the volume reserved for a claim, or else the smallest suitable one, the first of several."""
    best: Volume | None = None
    for volume in volumes:
        if is_bound_to(volume, claim):
            return volume
        if best is None or volume.spec.capacity[_STORAGE] < best.spec.capacity[_STORAGE]:
            best = volume
    return best


def size(claim: Claim) -> int:
    """Return the requested storage of a claim, in nanobytes."""
    requested = claim.spec.resources.requests.get(_STORAGE)
    return 0 if requested is None else requested.nanos
