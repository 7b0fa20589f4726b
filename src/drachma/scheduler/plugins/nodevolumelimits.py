"""NodeVolumeLimits: limits the volumes of a storage driver on a node, as its CSINode says.

Volumes of the node's pods count, and attached volumes, each once. A claim without a volume counts for the driver that
will provision it. A driver may also require pods to go only to nodes where it is installed.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Final, NamedTuple

from drachma.api import csinode, persistentvolumeclaim, pod, volumeattachment
from drachma.claims import volumeclaims
from drachma.runtime import cache
from drachma.scheduler.framework import cyclestate, hints, plugin, verdict
from drachma.scheduler.framework.plugin import Filtered, PreFilterResult
from drachma.scheduler.snapshot import Snapshot, nodeclass, nodeinfo
from drachma.scheduler.snapshot import volumes as snapshotvolumes

Claim = persistentvolumeclaim.PersistentVolumeClaim

_NAME: Final = "NodeVolumeLimits"
_TOO_MANY: Final = verdict.Rejection(_NAME, ("node(s) exceed max volume count",), is_resolvable=True)


class _Volume(NamedTuple):
    """Volume of a driver; a volume that is not provisioned yet goes by its claim."""

    driver: str
    handle: str | cache.Key


_VOLUMES: Final = cyclestate.Key[frozenset[_Volume]]("volumes of the pod by driver")


class NodeVolumeLimits:
    """The plugin."""

    name: Final = _NAME

    def pre_filter(self, cycle: cyclestate.CycleState) -> PreFilterResult:
        """Find the volumes of the pod that drivers provide. Skip the filter if there are none."""
        volumes = frozenset(_volumes(cycle.pod.pod, cycle.snapshot.volumes))
        if not volumes:
            return plugin.SKIP
        cycle.write(_VOLUMES, volumes)
        return plugin.ALL_NODES

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """Return the nodes that can have all of the pod's volumes in addition to their own."""
        volumes, snapshot_volumes = cycle.read(_VOLUMES), cycle.snapshot.volumes
        rejections: list[tuple[verdict.Rejection, int]] = []
        for driver in sorted({each.driver for each in volumes}):
            wanting = snapshot_volumes.drivers.get(driver)
            if alive and wanting is not None and wanting.spec.prevent_pod_scheduling_if_missing:
                not_installed = verdict.Rejection(
                    _NAME, (f"{driver} CSI driver is not installed on the node",), is_resolvable=True
                )
                installed = _nodes_with(driver, cycle.snapshot, among=alive)
                alive, more = plugin.split(alive, installed, rejection=not_installed)
                rejections += more
        full = 0
        for slot in nodeclass.slots(alive):
            info = cycle.snapshot.nodes.at(slot)
            if not _has_room(volumes, info, snapshot_volumes):
                full |= info.bit
        alive, more = plugin.split(alive, ~full, rejection=_TOO_MANY)
        return alive, [*rejections, *more]

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return _HINTS


def _volumes(user: pod.Pod, snapshot_volumes: snapshotvolumes.Volumes) -> Iterator[_Volume]:
    """Yield the volumes of a pod whose driver is known."""
    for name in volumeclaims.names(user):
        key = cache.Key(user.metadata.namespace, name)
        claim = snapshot_volumes.claims.get(key)
        if claim is None:
            continue
        volume = snapshot_volumes.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            if volume.spec.csi is not None:
                yield _Volume(volume.spec.csi.driver, volume.spec.csi.volume_handle)
            continue
        storage_class = snapshot_volumes.classes.get(persistentvolumeclaim.class_of(claim))
        if storage_class is not None and storage_class.provisioner:
            yield _Volume(storage_class.provisioner, key)


def _nodes_with(driver: str, snapshot: Snapshot, *, among: int) -> int:
    """Return the nodes on which a driver is installed."""
    nodes = 0
    for slot in nodeclass.slots(among):
        info = snapshot.nodes.at(slot)
        described = snapshot.volumes.driver_nodes.get(info.name)
        if described is not None and any(each.name == driver for each in described.spec.drivers):
            nodes |= info.bit
    return nodes


def _has_room(volumes: frozenset[_Volume], info: nodeinfo.NodeInfo, snapshot_volumes: snapshotvolumes.Volumes) -> bool:
    described = snapshot_volumes.driver_nodes.get(info.name)
    limits = {} if described is None else _limits(described)
    if limits.keys().isdisjoint(each.driver for each in volumes):
        return True
    present = {each for booking in info.ledger.bookings.values() for each in _volumes(booking.pod, snapshot_volumes)}
    present |= set(_attached(info.name, snapshot_volumes))
    counts = collections.Counter(each.driver for each in present)
    more = collections.Counter(each.driver for each in volumes - present)
    return all(counts[driver] + count <= limits[driver] for driver, count in more.items() if driver in limits)


def _limits(described: csinode.CSINode) -> dict[str, int]:
    return {
        driver.name: int(driver.allocatable.count)
        for driver in described.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _attached(node: str, snapshot_volumes: snapshotvolumes.Volumes) -> Iterator[_Volume]:
    for attachment in snapshot_volumes.attachments.get(node, {}).values():
        volume = snapshot_volumes.volumes.get(attachment.spec.source.persistent_volume_name or "")
        if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
            yield _Volume(attachment.spec.attacher, volume.spec.csi.volume_handle)


def _node_helps(_waiting: pod.Pod, old: csinode.CSINode, new: csinode.CSINode) -> bool:
    before = _limits(old)
    return any(count > before.get(driver, 0) for driver, count in _limits(new).items())


def _deletion_helps(_waiting: pod.Pod, old: pod.Pod, _new: None) -> bool:
    return bool(volumeclaims.names(old))


def _claim_helps(waiting_pod: pod.Pod, _old: None, new: Claim) -> bool:
    return new.metadata.namespace == waiting_pod.metadata.namespace and new.metadata.name in volumeclaims.names(
        waiting_pod
    )


def _detachment_helps(waiting_pod: pod.Pod, _old: volumeattachment.VolumeAttachment, _new: None) -> bool:
    return not all(volumeclaims.names(waiting_pod).values())


_HINTS: Final = (
    hints.Hint(hints.Resource.CSI_NODE, hints.Action.ADD, hints.always),
    hints.Hint(hints.Resource.CSI_NODE, hints.Action.UPDATE, _node_helps),
    hints.Hint(hints.Resource.ASSIGNED_POD, hints.Action.DELETE, _deletion_helps),
    hints.Hint(hints.Resource.PERSISTENT_VOLUME_CLAIM, hints.Action.ADD, _claim_helps),
    hints.Hint(hints.Resource.VOLUME_ATTACHMENT, hints.Action.DELETE, _detachment_helps),
)
