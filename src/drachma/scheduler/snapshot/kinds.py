"""Table of the kinds that a snapshot is made of: how each is taken in and out, and which changes help waiting pods.

Informers of the scheduler, simulations, recordings, dumps and live readers all iterate this table, so a new kind is one
more row. Rows are in the order in which objects are taken in: nodes and devices before claims, and claims before pods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from drachma.api import (
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
    """Feature that the kind belongs to; without it the kind is not served and plays no part."""


TABLE: Final[tuple[SnapshotKind, ...]] = (
    SnapshotKind(
        namespace.Namespace,
        put=lambda snapshot, new: snapshot.namespaces.__setitem__(new.metadata.name, new.metadata.labels),
        remove=lambda snapshot, gone: snapshot.namespaces.pop(gone.metadata.name, None),
    ),
    SnapshotKind(
        service.Service,
        put=lambda snapshot, new: snapshot.workloads.put_service(new),
        remove=lambda snapshot, gone: snapshot.workloads.remove_service(gone),
    ),
    SnapshotKind(
        replicaset.ReplicaSet,
        put=lambda snapshot, new: snapshot.workloads.put_owner(new),
        remove=lambda snapshot, gone: snapshot.workloads.remove_owner(gone),
    ),
    SnapshotKind(
        statefulset.StatefulSet,
        put=lambda snapshot, new: snapshot.workloads.put_owner(new),
        remove=lambda snapshot, gone: snapshot.workloads.remove_owner(gone),
    ),
    SnapshotKind(
        podgroup.PodGroup,
        put=lambda snapshot, new: snapshot.gangs.put_group(new),
        remove=lambda snapshot, gone: snapshot.gangs.remove_group(gone),
        changes=changes.of_group,
        gate=gates.Gate.GENERIC_WORKLOAD,
    ),
    SnapshotKind(
        poddisruptionbudget.PodDisruptionBudget,
        put=lambda snapshot, new: snapshot.budgets.put(new),
        remove=lambda snapshot, gone: snapshot.budgets.remove(gone),
    ),
    SnapshotKind(
        storageclass.StorageClass,
        put=lambda snapshot, new: snapshot.volumes.put_class(new),
        remove=lambda snapshot, gone: snapshot.volumes.remove_class(gone),
        changes=changes.every_change(Resource.STORAGE_CLASS),
    ),
    SnapshotKind(
        persistentvolume.PersistentVolume,
        put=lambda snapshot, new: snapshot.volumes.put_volume(new),
        remove=lambda snapshot, gone: snapshot.volumes.remove_volume(gone),
        changes=changes.every_change(Resource.PERSISTENT_VOLUME),
    ),
    SnapshotKind(
        persistentvolumeclaim.PersistentVolumeClaim,
        put=lambda snapshot, new: snapshot.volumes.put_claim(new),
        remove=lambda snapshot, gone: snapshot.volumes.remove_claim(gone),
        changes=changes.every_change(Resource.PERSISTENT_VOLUME_CLAIM),
    ),
    SnapshotKind(
        csidriver.CSIDriver,
        put=lambda snapshot, new: snapshot.volumes.put_driver(new),
        remove=lambda snapshot, gone: snapshot.volumes.remove_driver(gone),
        changes=changes.every_change(Resource.CSI_DRIVER),
    ),
    SnapshotKind(
        csinode.CSINode,
        put=lambda snapshot, new: snapshot.volumes.put_driver_node(new),
        remove=lambda snapshot, gone: snapshot.volumes.remove_driver_node(gone),
        changes=changes.every_change(Resource.CSI_NODE),
    ),
    SnapshotKind(
        volumeattachment.VolumeAttachment,
        put=lambda snapshot, new: snapshot.volumes.put_attachment(new),
        remove=lambda snapshot, gone: snapshot.volumes.remove_attachment(gone),
        changes=changes.every_change(Resource.VOLUME_ATTACHMENT),
    ),
    SnapshotKind(
        node.Node,
        put=lambda snapshot, new: snapshot.add_node(new),
        remove=lambda snapshot, gone: snapshot.remove_node(str(gone.metadata.name)),
        changes=changes.of_node,
    ),
    SnapshotKind(
        deviceclass.DeviceClass,
        put=lambda snapshot, new: snapshot.devices.put_class(new),
        remove=lambda snapshot, gone: snapshot.devices.remove_class(str(gone.metadata.name)),
        changes=changes.additions_and_updates(Resource.DEVICE_CLASS),
    ),
    SnapshotKind(
        devicetaintrule.DeviceTaintRule,
        put=lambda snapshot, new: snapshot.devices.put_rule(new),
        remove=lambda snapshot, gone: snapshot.devices.remove_rule(str(gone.metadata.name)),
        changes=changes.of_rule,
        gate=gates.Gate.DEVICE_TAINT_RULES,
    ),
    SnapshotKind(
        resourceslice.ResourceSlice,
        put=lambda snapshot, new: snapshot.devices.put_slice(new),
        remove=lambda snapshot, gone: snapshot.devices.remove_slice(str(gone.metadata.name)),
        changes=changes.additions_and_updates(Resource.RESOURCE_SLICE),
    ),
    SnapshotKind(
        resourceclaim.ResourceClaim,
        put=lambda snapshot, new: snapshot.claims.observe(new),
        remove=lambda snapshot, gone: snapshot.claims.remove(gone),
    ),
    SnapshotKind(
        pod.Pod,
        put=lambda snapshot, new: snapshot.add_pod(new),
        remove=lambda snapshot, gone: snapshot.remove_pod(gone.metadata.uid),
    ),
)
"""All kinds. Of claims and pods the scheduler's handlers know more: its queue depends on how they changed."""

_BY_KIND: Final = {row.kind: row for row in TABLE}


def row(kind: type[meta.Object]) -> SnapshotKind:
    """Return the row of a kind; KeyError for kinds that no snapshot has."""
    return _BY_KIND[kind]


def followed(enabled: gates.Gates) -> tuple[SnapshotKind, ...]:
    """Return the rows of kinds that a server with these features has."""
    return tuple(each for each in TABLE if each.gate is None or enabled.on(each.gate))
