"""Volume claims of a pod, sorted by their state."""

from __future__ import annotations

from typing import NamedTuple

from drachma.api import persistentvolumeclaim, pod, storageclass
from drachma.claims import volumeclaims
from drachma.runtime import cache
from drachma.scheduler.snapshot import volumes as snapshotvolumes

Claim = persistentvolumeclaim.PersistentVolumeClaim


class PodVolumes(NamedTuple):
    """Claims with a volume, and claims that get one on the pod's node."""

    bound: tuple[Claim, ...] = ()
    delayed: tuple[Claim, ...] = ()


def read(
    user: pod.Pod, snapshot_volumes: snapshotvolumes.Volumes, *, are_bound_by_controllers: bool
) -> PodVolumes | str | None:
    """Return the claims of a pod, why it fits nowhere, or None if it has none.

    If no controller binds volumes, pods do not wait for claims without one.
    """
    names = volumeclaims.names(user)
    if not names:
        return None
    bound: list[Claim] = []
    delayed: list[Claim] = []
    is_waiting = False
    for name, is_own in names.items():
        claim = snapshot_volumes.claims.get(cache.Key(user.metadata.namespace, name))
        problem = _problem(claim, name, user, is_own=is_own)
        if problem or claim is None:
            return problem
        if is_fully_bound(claim):
            bound.append(claim)
        elif not claim.spec.volume_name and _is_delayed(claim, snapshot_volumes):
            delayed.append(claim)
        else:
            is_waiting = True
    if is_waiting and are_bound_by_controllers:
        return "pod has unbound immediate PersistentVolumeClaims"
    return PodVolumes(tuple(bound), tuple(delayed) if are_bound_by_controllers else ())


def is_fully_bound(claim: Claim) -> bool:
    """Return True if a claim and a volume are bound to each other."""
    return bool(claim.spec.volume_name) and volumeclaims.BIND_COMPLETED in claim.metadata.annotations


def _problem(claim: Claim | None, name: str, user: pod.Pod, *, is_own: bool) -> str:
    if claim is None:
        if is_own:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    owners = {owner.uid for owner in claim.metadata.owner_references if owner.controller}
    if is_own and user.metadata.uid not in owners:
        label = f"{claim.metadata.namespace}/{name}"
        return f"PVC {label} was not created for pod {user.metadata.namespace}/{user.metadata.name} (pod is not owner)"
    return ""


def _is_delayed(claim: Claim, snapshot_volumes: snapshotvolumes.Volumes) -> bool:
    storage_class = snapshot_volumes.classes.get(persistentvolumeclaim.class_of(claim))
    return storage_class is not None and storage_class.volume_binding_mode == storageclass.WAIT_FOR_FIRST_CONSUMER
