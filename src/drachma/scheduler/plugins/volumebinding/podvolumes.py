"""The volume claims of a pod, sorted by what has to be done about them."""

from __future__ import annotations

from typing import NamedTuple

from drachma.api import persistentvolumeclaim, pod, storageclass
from drachma.claims import volumeclaims
from drachma.runtime import cache
from drachma.scheduler.snapshot import volumes as snapshotvolumes

Claim = persistentvolumeclaim.PersistentVolumeClaim


class PodVolumes(NamedTuple):
    """Claims that have a volume, and claims that get one where the pod goes."""

    bound: tuple[Claim, ...] = ()
    delayed: tuple[Claim, ...] = ()


def read(of: pod.Pod, known: snapshotvolumes.Volumes, *, are_bound_by_controllers: bool) -> PodVolumes | str | None:
    """The claims of a pod; why it fits nowhere; or None where it has none.

    Where no controller binds volumes, claims that wait for one keep nobody waiting.
    """
    names = volumeclaims.names(of)
    if not names:
        return None
    bound: list[Claim] = []
    delayed: list[Claim] = []
    is_waiting = False
    for name, is_own in names.items():
        claim = known.claims.get(cache.Key(of.metadata.namespace, name))
        problem = _problem(claim, name, of, is_own=is_own)
        if problem or claim is None:
            return problem
        if is_fully_bound(claim):
            bound.append(claim)
        elif not claim.spec.volume_name and _is_delayed(claim, known):
            delayed.append(claim)
        else:
            is_waiting = True
    if is_waiting and are_bound_by_controllers:
        return "pod has unbound immediate PersistentVolumeClaims"
    return PodVolumes(tuple(bound), tuple(delayed) if are_bound_by_controllers else ())


def is_fully_bound(claim: Claim) -> bool:
    """Whether a claim has a volume, and the volume the claim."""
    return bool(claim.spec.volume_name) and volumeclaims.BIND_COMPLETED in claim.metadata.annotations


def _problem(claim: Claim | None, name: str, of: pod.Pod, *, is_own: bool) -> str:
    if claim is None:
        if is_own:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    owners = {owner.uid for owner in claim.metadata.owner_references if owner.controller}
    if is_own and of.metadata.uid not in owners:
        label = f"{claim.metadata.namespace}/{name}"
        return f"PVC {label} was not created for pod {of.metadata.namespace}/{of.metadata.name} (pod is not owner)"
    return ""


def _is_delayed(claim: Claim, known: snapshotvolumes.Volumes) -> bool:
    chosen = known.classes.get(persistentvolumeclaim.class_of(claim))
    return chosen is not None and chosen.volume_binding_mode == storageclass.WAIT_FOR_FIRST_CONSUMER
