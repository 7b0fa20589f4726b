"""VolumeRestrictions: claims for one pod at a time, and disks that pods of a node cannot share."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Final

from drachma.api import persistentvolumeclaim, pod
from drachma.claims import volumeclaims
from drachma.runtime import cache
from drachma.scheduler.framework import cyclestate, hints, plugin, verdict
from drachma.scheduler.framework.plugin import Filtered, PreFilterResult
from drachma.scheduler.snapshot import Snapshot, nodeinfo

Claim = persistentvolumeclaim.PersistentVolumeClaim

_NAME: Final = "VolumeRestrictions"
_ONE_POD: Final = "ReadWriteOncePod"
_DISK_IN_USE: Final = verdict.Rejection(_NAME, ("node(s) had no available disk",), is_resolvable=True)
_IN_USE: Final = "PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
_CLAIM_IN_USE: Final = verdict.Rejection(_NAME, (f"node(s) unavailable due to {_IN_USE}",), is_resolvable=True)

_CLAIMS: Final = cyclestate.Key[frozenset[str]]("claims of the pod that are for one pod at a time")


class VolumeRestrictions:
    """The plugin."""

    name: Final = _NAME

    def pre_filter(self, cycle: cyclestate.CycleState) -> PreFilterResult | verdict.Rejection:
        """Find the claims that only one pod may use. Skip the filter if there are none and no disks."""
        own = cycle.pod.pod
        if not own.spec.volumes:
            return plugin.SKIP
        exclusive: set[str] = set()
        for name in _claim_names(own):
            claim = cycle.snapshot.volumes.claims.get(cache.Key(own.metadata.namespace, name))
            if claim is None:
                return verdict.Rejection(_NAME, (f'persistentvolumeclaim "{name}" not found',))
            if _ONE_POD in claim.spec.access_modes:
                exclusive.add(name)
        if not exclusive and not any(map(volumeclaims.is_exclusive, own.spec.volumes)):
            return plugin.SKIP
        cycle.write(_CLAIMS, frozenset(exclusive))
        return plugin.ALL_NODES

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """Return the nodes on which the pod's disks are free; none while its claims are in use on any node."""
        rejections: list[tuple[verdict.Rejection, int]] = []
        nodes, own = cycle.snapshot.nodes, cycle.pod.pod
        disks = tuple(filter(volumeclaims.is_exclusive, own.spec.volumes))
        if disks:
            classes = nodes.resources.classes((_NAME, disks), functools.partial(_has_disks, disks), among=alive)
            alive, more = plugin.split(alive, classes.get(True, 0), rejection=_DISK_IN_USE)
            rejections += more
        claims = cycle.read(_CLAIMS)
        if claims and alive:
            question = functools.partial(_uses_any, own.metadata.namespace, claims)
            users = nodes.resources.classes((_NAME, own.metadata.namespace, claims), question, among=nodes.all_nodes)
            if users.get(True, 0):
                return 0, [*rejections, (_CLAIM_IN_USE, alive)]
        return alive, rejections

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return _HINTS


def _claim_names(user: pod.Pod) -> Iterable[str]:
    """Return the claims that a pod names, without those generated for it."""
    return (name for name, is_own in volumeclaims.names(user).items() if not is_own)


def _uses_any(namespace: str, claims: frozenset[str], info: nodeinfo.NodeInfo) -> bool:
    return any(
        booking.pod.metadata.namespace == namespace and not claims.isdisjoint(_claim_names(booking.pod))
        for booking in info.ledger.bookings.values()
    )


def _has_disks(disks: tuple[pod.Volume, ...], info: nodeinfo.NodeInfo) -> bool:
    return not any(_conflict(disks, booking.pod) for booking in info.ledger.bookings.values())


def _conflict(disks: Iterable[pod.Volume], resident: pod.Pod) -> bool:
    theirs = tuple(filter(volumeclaims.is_exclusive, resident.spec.volumes))
    return any(_excludes(own, each) for own in disks for each in theirs)


def _excludes(own: pod.Volume, resident_volume: pod.Volume) -> bool:
    """Return True if two volumes are the same disk and two pods of a node cannot share it. Most may be read by both."""
    gce, other_gce = own.gce_persistent_disk, resident_volume.gce_persistent_disk
    if gce is not None and other_gce is not None and gce.pd_name == other_gce.pd_name:
        return not (gce.read_only and other_gce.read_only)
    ebs, other_ebs = own.aws_elastic_block_store, resident_volume.aws_elastic_block_store
    if ebs is not None and other_ebs is not None:
        return ebs.volume_id == other_ebs.volume_id
    if own.iscsi is not None and resident_volume.iscsi is not None and own.iscsi.iqn == resident_volume.iscsi.iqn:
        return not (own.iscsi.read_only and resident_volume.iscsi.read_only)
    rbd, other_rbd = own.rbd, resident_volume.rbd
    if rbd is None or other_rbd is None or (rbd.pool, rbd.image) != (other_rbd.pool, other_rbd.image):
        return False
    return not set(rbd.monitors).isdisjoint(other_rbd.monitors) and not (rbd.read_only and other_rbd.read_only)


def _deletion_helps(waiting_pod: pod.Pod, old: pod.Pod, _new: None) -> bool:
    if old.metadata.namespace != waiting_pod.metadata.namespace:
        return False
    disks = filter(volumeclaims.is_exclusive, waiting_pod.spec.volumes)
    return _conflict(tuple(disks), old) or not set(_claim_names(waiting_pod)).isdisjoint(_claim_names(old))


def _claim_helps(waiting_pod: pod.Pod, _old: None, new: Claim) -> bool:
    return new.metadata.namespace == waiting_pod.metadata.namespace and new.metadata.name in _claim_names(waiting_pod)


_HINTS: Final = (
    hints.Hint(hints.Resource.ASSIGNED_POD, hints.Action.DELETE, _deletion_helps),
    hints.Hint(hints.Resource.NODE, hints.Action.ADD, hints.always),
    hints.Hint(hints.Resource.PERSISTENT_VOLUME_CLAIM, hints.Action.ADD, _claim_helps),
)
