"""Volume claims: which volume would do for a claim, and which of several it gets.

The scheduler asks for claims that wait for a pod, the controller of volumes for all others; both get the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from drachma.api import labelselectors, persistentvolume, persistentvolumeclaim, pod, storageclass
from drachma.values import labels

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""The annotation by which provisioners learn where a claim's volume is needed."""

BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""The annotation of volumes and claims which nobody but a controller brought together."""

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""The annotation of claims to which a controller has bound a volume for good."""

_DEFAULT: Final = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_STORAGE: Final = "storage"
_FILESYSTEM: Final = "Filesystem"


def default_class(classes: Iterable[storageclass.StorageClass]) -> str:
    """The class of claims that name none: the newest that says so, the first by name of several."""
    chosen = [each for each in classes if any(each.metadata.annotations.get(name) == "true" for name in _DEFAULT)]
    chosen.sort(key=lambda each: each.metadata.name)
    newest = max(
        (each.metadata.creation_timestamp for each in chosen if each.metadata.creation_timestamp), default=None
    )
    return next((each.metadata.name for each in chosen if each.metadata.creation_timestamp == newest), "")


def names(of: pod.Pod) -> dict[str, bool]:
    """The names of the claims that a pod uses, and whether each is made for it alone."""
    names: dict[str, bool] = {}
    for volume in of.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names[volume.persistent_volume_claim.claim_name] = False
        elif volume.ephemeral is not None:
            names[f"{of.metadata.name}-{volume.name}"] = True
    return names


def is_exclusive(volume: pod.Volume) -> bool:
    """Whether a volume is a disk that pods of one node may not share, or only as readers."""
    disks = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd)
    return any(disk is not None for disk in disks)


def is_bound_to(volume: Volume, claim: Claim) -> bool:
    """Whether a volume says that it is a claim's; one without a uid is meant for any claim of the name."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return not reference.uid or reference.uid == claim.metadata.uid


def suits(volume: Volume, claim: Claim) -> bool:
    """Whether a volume would do for a claim, wherever it is."""
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
    """Of volumes that suit a claim the one that is meant for it, or else the smallest, the first of several."""
    best: Volume | None = None
    for volume in volumes:
        if is_bound_to(volume, claim):
            return volume
        if best is None or volume.spec.capacity[_STORAGE] < best.spec.capacity[_STORAGE]:
            best = volume
    return best


def size(claim: Claim) -> int:
    """How much storage a claim asks for, in nanobytes."""
    requested = claim.spec.resources.requests.get(_STORAGE)
    return 0 if requested is None else requested.nanos
