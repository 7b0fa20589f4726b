"""Volume matching: finds the smallest suitable volumes for claims on a node, and the volumes to provision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from drachma.api import persistentvolume, persistentvolumeclaim, storageclass
from drachma.claims import volumeclaims
from drachma.scheduler.snapshot import nodeinfo

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume


class Matched(NamedTuple):
    """Volumes of claims on a node."""

    volumes: tuple[tuple[Volume, Claim], ...] = ()
    provisioned: tuple[Claim, ...] = ()
    """Claims whose volumes must be provisioned."""


def match(
    claims: Sequence[Claim],
    candidates: dict[str, list[Volume]],
    info: nodeinfo.NodeInfo,
    *,
    classes: dict[str, storageclass.StorageClass],
) -> Matched | None:
    """Return the volumes of claims on a node, or None if a claim gets none.

    ``candidates`` has the volumes that suit a claim and can be used on the node, by the claim's uid.
    """
    provisioned = [claim for claim in claims if volumeclaims.SELECTED_NODE in claim.metadata.annotations]
    if any(claim.metadata.annotations[volumeclaims.SELECTED_NODE] != info.name for claim in provisioned):
        return None
    used_volumes: dict[str, tuple[Volume, Claim]] = {}
    for claim in sorted(claims, key=volumeclaims.size):
        if volumeclaims.SELECTED_NODE in claim.metadata.annotations:
            continue
        volume = volumeclaims.smallest(
            claim, (each for each in candidates[claim.metadata.uid] if each.metadata.name not in used_volumes)
        )
        if volume is None:
            provisioned.append(claim)
        else:
            used_volumes[volume.metadata.name] = (volume, claim)
    if not all(_can_be_provisioned(claim, info, classes=classes) for claim in provisioned):
        return None
    return Matched(tuple(used_volumes.values()), tuple(provisioned))


def _can_be_provisioned(
    claim: Claim, info: nodeinfo.NodeInfo, *, classes: dict[str, storageclass.StorageClass]
) -> bool:
    storage_class = classes.get(persistentvolumeclaim.class_of(claim))
    if storage_class is None or storage_class.provisioner in ("", storageclass.NO_PROVISIONER):
        return False
    here = info.node.metadata.labels
    return not storage_class.allowed_topologies or any(
        all(here.get(each.key) in each.values for each in term.match_label_expressions)
        for term in storage_class.allowed_topologies
    )
