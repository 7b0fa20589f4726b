"""Volume matching: which volumes claims get on a node, the smallest that will do, and which have to be made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from drachma.api import labelselectors, persistentvolume, persistentvolumeclaim, storageclass
from drachma.scheduler.snapshot import nodeinfo
from drachma.scheduler.snapshot import volumes as snapshotvolumes
from drachma.values import labels

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""The annotation by which provisioners learn where a claim's volume is needed."""

_STORAGE: Final = "storage"
_FILESYSTEM: Final = "Filesystem"


class Matched(NamedTuple):
    """What claims get on a node."""

    volumes: tuple[tuple[Volume, Claim], ...] = ()
    provisioned: tuple[Claim, ...] = ()
    """Claims whose volumes are yet to be made."""


def match(
    claims: Sequence[Claim],
    candidates: dict[str, list[Volume]],
    info: nodeinfo.NodeInfo,
    *,
    classes: dict[str, storageclass.StorageClass],
) -> Matched | None:
    """What claims get on a node; None where one gets nothing.

    ``candidates`` has for each claim, by uid, the volumes that suit it and can be used on the node.
    """
    provisioned = [claim for claim in claims if SELECTED_NODE in claim.metadata.annotations]
    if any(claim.metadata.annotations[SELECTED_NODE] != info.name for claim in provisioned):
        return None
    taken: dict[str, tuple[Volume, Claim]] = {}
    for claim in sorted(claims, key=_size):
        if SELECTED_NODE in claim.metadata.annotations:
            continue
        volume = _smallest(claim, (each for each in candidates[claim.metadata.uid] if each.metadata.name not in taken))
        if volume is None:
            provisioned.append(claim)
        else:
            taken[volume.metadata.name] = (volume, claim)
    if not all(_can_be_provisioned(claim, info, classes=classes) for claim in provisioned):
        return None
    return Matched(tuple(taken.values()), tuple(provisioned))


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
    if snapshotvolumes.is_bound_to(volume, claim):
        return True
    selector = labels.EVERYTHING if claim.spec.selector is None else labelselectors.of(claim.spec.selector)
    return (
        volume.status.phase == persistentvolume.AVAILABLE
        and selector.matches(volume.metadata.labels)
        and volume.spec.storage_class_name == persistentvolumeclaim.class_of(claim)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def _smallest(claim: Claim, volumes: Iterable[Volume]) -> Volume | None:
    """The volume that is meant for a claim, or else the smallest, the first of several."""
    best: Volume | None = None
    for volume in volumes:
        if snapshotvolumes.is_bound_to(volume, claim):
            return volume
        if best is None or volume.spec.capacity[_STORAGE] < best.spec.capacity[_STORAGE]:
            best = volume
    return best


def _size(claim: Claim) -> int:
    requested = claim.spec.resources.requests.get(_STORAGE)
    return 0 if requested is None else requested.nanos


def _can_be_provisioned(
    claim: Claim, info: nodeinfo.NodeInfo, *, classes: dict[str, storageclass.StorageClass]
) -> bool:
    chosen = classes.get(persistentvolumeclaim.class_of(claim))
    if chosen is None or chosen.provisioner in ("", storageclass.NO_PROVISIONER):
        return False
    here = info.node.metadata.labels
    return not chosen.allowed_topologies or any(
        all(here.get(each.key) in each.values for each in term.match_label_expressions)
        for term in chosen.allowed_topologies
    )
