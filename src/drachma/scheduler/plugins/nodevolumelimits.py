"""NodeVolumeLimits: how many volumes of a storage driver a node can have, as its CSINode says.

Volumes that pods of the node use count, and those that are attached for whatever reason, each once. A claim that has
no volume yet counts for the driver that will make it. Drivers may also want pods to go only where they are installed.
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
    """A volume of a driver; one that is yet to be made goes by its claim."""

    driver: str
    handle: str | cache.Key


_VOLUMES: Final = cyclestate.Key[frozenset[_Volume]]("volumes of the pod by driver")


class NodeVolumeLimits:
    """The plugin."""

    name: Final = _NAME

    def pre_filter(self, cycle: cyclestate.CycleState) -> PreFilterResult:
        """Finds the volumes of the pod that a driver provides; nothing is to be filtered where there is none."""
        volumes = frozenset(_volumes(cycle.pod.pod, cycle.snapshot.volumes))
        if not volumes:
            return plugin.SKIP
        cycle.write(_VOLUMES, volumes)
        return plugin.ALL_NODES

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """The nodes that can have all of the pod's volumes beside those that they have."""
        volumes, known = cycle.read(_VOLUMES), cycle.snapshot.volumes
        rejections: list[tuple[verdict.Rejection, int]] = []
        for driver in sorted({each.driver for each in volumes}):
            wanting = known.drivers.get(driver)
            if alive and wanting is not None and wanting.spec.prevent_pod_scheduling_if_missing:
                missing = verdict.Rejection(
                    _NAME, (f"{driver} CSI driver is not installed on the node",), is_resolvable=True
                )
                installed = _nodes_with(driver, cycle.snapshot, among=alive)
                alive, more = plugin.split(alive, installed, rejection=missing)
                rejections += more
        full = 0
        for slot in nodeclass.slots(alive):
            info = cycle.snapshot.nodes.at(slot)
            if not _has_room(volumes, info, known):
                full |= info.bit
        alive, more = plugin.split(alive, ~full, rejection=_TOO_MANY)
        return alive, [*rejections, *more]

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """The changes that can help."""
        return _HINTS


def _volumes(of: pod.Pod, known: snapshotvolumes.Volumes) -> Iterator[_Volume]:
    """The volumes of a pod, as far as it is known which driver has them."""
    for name in volumeclaims.names(of):
        key = cache.Key(of.metadata.namespace, name)
        claim = known.claims.get(key)
        if claim is None:
            continue
        volume = known.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            if volume.spec.csi is not None:
                yield _Volume(volume.spec.csi.driver, volume.spec.csi.volume_handle)
            continue
        chosen = known.classes.get(persistentvolumeclaim.class_of(claim))
        if chosen is not None and chosen.provisioner:
            yield _Volume(chosen.provisioner, key)


def _nodes_with(driver: str, snapshot: Snapshot, *, among: int) -> int:
    """The nodes on which a driver is installed."""
    nodes = 0
    for slot in nodeclass.slots(among):
        info = snapshot.nodes.at(slot)
        described = snapshot.volumes.driver_nodes.get(info.name)
        if described is not None and any(each.name == driver for each in described.spec.drivers):
            nodes |= info.bit
    return nodes


def _has_room(volumes: frozenset[_Volume], info: nodeinfo.NodeInfo, known: snapshotvolumes.Volumes) -> bool:
    described = known.driver_nodes.get(info.name)
    limits = {} if described is None else _limits(described)
    if limits.keys().isdisjoint(each.driver for each in volumes):
        return True
    present = {each for booking in info.ledger.bookings.values() for each in _volumes(booking.pod, known)}
    present |= set(_attached(info.name, known))
    counts = collections.Counter(each.driver for each in present)
    more = collections.Counter(each.driver for each in volumes - present)
    return all(counts[driver] + count <= limits[driver] for driver, count in more.items() if driver in limits)


def _limits(described: csinode.CSINode) -> dict[str, int]:
    return {
        driver.name: int(driver.allocatable.count)
        for driver in described.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _attached(node: str, known: snapshotvolumes.Volumes) -> Iterator[_Volume]:
    for attachment in known.attachments.get(node, {}).values():
        volume = known.volumes.get(attachment.spec.source.persistent_volume_name or "")
        if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
            yield _Volume(attachment.spec.attacher, volume.spec.csi.volume_handle)


def _node_helps(_waiting: pod.Pod, old: csinode.CSINode, new: csinode.CSINode) -> bool:
    before = _limits(old)
    return any(count > before.get(driver, 0) for driver, count in _limits(new).items())


def _deletion_helps(_waiting: pod.Pod, old: pod.Pod, _new: None) -> bool:
    return bool(volumeclaims.names(old))


def _claim_helps(waiting: pod.Pod, _old: None, new: Claim) -> bool:
    return new.metadata.namespace == waiting.metadata.namespace and new.metadata.name in volumeclaims.names(waiting)


def _detachment_helps(waiting: pod.Pod, _old: volumeattachment.VolumeAttachment, _new: None) -> bool:
    return not all(volumeclaims.names(waiting).values())


_HINTS: Final = (
    hints.Hint(hints.Resource.CSI_NODE, hints.Action.ADD, hints.always),
    hints.Hint(hints.Resource.CSI_NODE, hints.Action.UPDATE, _node_helps),
    hints.Hint(hints.Resource.ASSIGNED_POD, hints.Action.DELETE, _deletion_helps),
    hints.Hint(hints.Resource.PERSISTENT_VOLUME_CLAIM, hints.Action.ADD, _claim_helps),
    hints.Hint(hints.Resource.VOLUME_ATTACHMENT, hints.Action.DELETE, _detachment_helps),
)
