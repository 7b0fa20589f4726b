"""Volume matching: which volumes claims get on a node, the smallest that will do, and which have to be made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from drachma.api import persistentvolume, persistentvolumeclaim, storageclass
from drachma.claims import volumeclaims
from drachma.scheduler.snapshot import nodeinfo

Claim = persistentvolumeclaim.PersistentVolumeClaim
Volume = persistentvolume.PersistentVolume


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
    provisioned = [claim for claim in claims if volumeclaims.SELECTED_NODE in claim.metadata.annotations]
    if any(claim.metadata.annotations[volumeclaims.SELECTED_NODE] != info.name for claim in provisioned):
        return None
    taken: dict[str, tuple[Volume, Claim]] = {}
    for claim in sorted(claims, key=volumeclaims.size):
        if volumeclaims.SELECTED_NODE in claim.metadata.annotations:
            continue
        volume = volumeclaims.smallest(
            claim, (each for each in candidates[claim.metadata.uid] if each.metadata.name not in taken)
        )
        if volume is None:
            provisioned.append(claim)
        else:
            taken[volume.metadata.name] = (volume, claim)
    if not all(_can_be_provisioned(claim, info, classes=classes) for claim in provisioned):
        return None
    return Matched(tuple(taken.values()), tuple(provisioned))


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
