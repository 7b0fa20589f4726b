"""Table of the kinds in a snapshot: how each is put in and removed, and which changes help waiting pods.

Informers of the scheduler, simulations, recordings, dumps and live readers all iterate this table, so a new kind is one
more row. Rows are in the order in which objects are put in: nodes and devices before claims, and claims before pods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from drachma.api import (
    compositepodgroup,
    csidriver,
    csinode,
    deviceclass,
    devicetaintrule,
    gates,
    meta,
    namespace,
    node,
    persistentvolume,
    persistentvolumeclaim,
    pod,
    poddisruptionbudget,
    podgroup,
    replicaset,
    replicationcontroller,
    resourceclaim,
    resourceslice,
    service,
    statefulset,
    storageclass,
    volumeattachment,
)
from drachma.scheduler.snapshot import changes
from drachma.scheduler.snapshot.changes import Resource

if TYPE_CHECKING:
    from drachma.scheduler.snapshot.snapshot import Snapshot


class SnapshotKind(NamedTuple):
    """Kind of objects in a snapshot."""

    kind: type[meta.Object]
    put: Callable[[Snapshot, Any], object]
    remove: Callable[[Snapshot, Any], object]
    changes: changes.Changes = changes.no_changes
    gate: gates.Gate | None = None
    """Feature that the kind belongs to; without it the kind is not served."""
    decides_devices: bool = False
    """True if the devices that a claim gets depend on objects of the kind."""


TABLE: Final[tuple[SnapshotKind, ...]] = (
    SnapshotKind(
        namespace.Namespace,
        put=lambda snapshot, new: snapshot.namespaces.__setitem__(new.metadata.name, new.metadata.labels),
        remove=lambda snapshot, deleted: snapshot.namespaces.pop(deleted.metadata.name, None),
        decides_devices=True,
    ),
    SnapshotKind(
        service.Service,
        put=lambda snapshot, new: snapshot.workloads.put_service(new),
        remove=lambda snapshot, deleted: snapshot.workloads.remove_service(deleted),
    ),
    SnapshotKind(
        replicaset.ReplicaSet,
        put=lambda snapshot, new: snapshot.workloads.put_owner(new),
        remove=lambda snapshot, deleted: snapshot.workloads.remove_owner(deleted),
    ),
    SnapshotKind(
        statefulset.StatefulSet,
        put=lambda snapshot, new: snapshot.workloads.put_owner(new),
        remove=lambda snapshot, deleted: snapshot.workloads.remove_owner(deleted),
    ),
    SnapshotKind(
        replicationcontroller.ReplicationController,
        put=lambda snapshot, new: snapshot.workloads.put_owner(new),
        remove=lambda snapshot, deleted: snapshot.workloads.remove_owner(deleted),
    ),
    SnapshotKind(
        podgroup.PodGroup,
        put=lambda snapshot, new: snapshot.gangs.put_group(new),
        remove=lambda snapshot, deleted: snapshot.gangs.remove_group(deleted),
        changes=changes.group_changes,
        gate=gates.Gate.GENERIC_WORKLOAD,
    ),
    SnapshotKind(
        compositepodgroup.CompositePodGroup,
        put=lambda snapshot, new: snapshot.gangs.put_composite(new),
        remove=lambda snapshot, deleted: snapshot.gangs.remove_composite(deleted),
        changes=changes.group_changes,
        gate=gates.Gate.COMPOSITE_POD_GROUP,
    ),
    SnapshotKind(
        poddisruptionbudget.PodDisruptionBudget,
        put=lambda snapshot, new: snapshot.budgets.put(new),
        remove=lambda snapshot, deleted: snapshot.budgets.remove(deleted),
    ),
    SnapshotKind(
        storageclass.StorageClass,
        put=lambda snapshot, new: snapshot.volumes.put_class(new),
        remove=lambda snapshot, deleted: snapshot.volumes.remove_class(deleted),
        changes=changes.every_change(Resource.STORAGE_CLASS),
    ),
    SnapshotKind(
        persistentvolume.PersistentVolume,
        put=lambda snapshot, new: snapshot.volumes.put_volume(new),
        remove=lambda snapshot, deleted: snapshot.volumes.remove_volume(deleted),
        changes=changes.every_change(Resource.PERSISTENT_VOLUME),
    ),
    SnapshotKind(
        persistentvolumeclaim.PersistentVolumeClaim,
        put=lambda snapshot, new: snapshot.volumes.put_claim(new),
        remove=lambda snapshot, deleted: snapshot.volumes.remove_claim(deleted),
        changes=changes.every_change(Resource.PERSISTENT_VOLUME_CLAIM),
    ),
    SnapshotKind(
        csidriver.CSIDriver,
        put=lambda snapshot, new: snapshot.volumes.put_driver(new),
        remove=lambda snapshot, deleted: snapshot.volumes.remove_driver(deleted),
        changes=changes.every_change(Resource.CSI_DRIVER),
    ),
    SnapshotKind(
        csinode.CSINode,
        put=lambda snapshot, new: snapshot.volumes.put_driver_node(new),
        remove=lambda snapshot, deleted: snapshot.volumes.remove_driver_node(deleted),
        changes=changes.every_change(Resource.CSI_NODE),
    ),
    SnapshotKind(
        volumeattachment.VolumeAttachment,
        put=lambda snapshot, new: snapshot.volumes.put_attachment(new),
        remove=lambda snapshot, deleted: snapshot.volumes.remove_attachment(deleted),
        changes=changes.every_change(Resource.VOLUME_ATTACHMENT),
    ),
    SnapshotKind(
        node.Node,
        put=lambda snapshot, new: snapshot.add_node(new),
        remove=lambda snapshot, deleted: snapshot.remove_node(str(deleted.metadata.name)),
        changes=changes.node_changes,
        decides_devices=True,
    ),
    SnapshotKind(
        deviceclass.DeviceClass,
        put=lambda snapshot, new: snapshot.devices.put_class(new),
        remove=lambda snapshot, deleted: snapshot.devices.remove_class(str(deleted.metadata.name)),
        changes=changes.additions_and_updates(Resource.DEVICE_CLASS),
        gate=gates.Gate.CORE,
        decides_devices=True,
    ),
    SnapshotKind(
        devicetaintrule.DeviceTaintRule,
        put=lambda snapshot, new: snapshot.devices.put_rule(new),
        remove=lambda snapshot, deleted: snapshot.devices.remove_rule(str(deleted.metadata.name)),
        changes=changes.rule_changes,
        gate=gates.Gate.DEVICE_TAINT_RULES,
        decides_devices=True,
    ),
    SnapshotKind(
        resourceslice.ResourceSlice,
        put=lambda snapshot, new: snapshot.devices.put_slice(new),
        remove=lambda snapshot, deleted: snapshot.devices.remove_slice(str(deleted.metadata.name)),
        changes=changes.additions_and_updates(Resource.RESOURCE_SLICE),
        gate=gates.Gate.CORE,
        decides_devices=True,
    ),
    SnapshotKind(
        resourceclaim.ResourceClaim,
        put=lambda snapshot, new: snapshot.claims.observe(new),
        remove=lambda snapshot, deleted: snapshot.claims.remove(deleted),
        gate=gates.Gate.CORE,
        decides_devices=True,
    ),
    SnapshotKind(
        pod.Pod,
        put=lambda snapshot, new: snapshot.add_pod(new),
        remove=lambda snapshot, deleted: snapshot.remove_pod(deleted.metadata.uid),
    ),
)
"""All kinds. The scheduler has handlers of its own for claims and pods, since its queue depends on their changes."""

_BY_KIND: Final = {row.kind: row for row in TABLE}


def row(kind: type[meta.Object]) -> SnapshotKind:
    """Return the row of a kind; KeyError for kinds that no snapshot has."""
    return _BY_KIND[kind]


def served_rows(enabled: gates.Gates) -> tuple[SnapshotKind, ...]:
    """Return the rows of kinds that a server with these features has."""
    return tuple(each for each in TABLE if each.gate is None or enabled.on(each.gate))
