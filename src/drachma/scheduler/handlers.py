"""Handlers: what changes in the API mean for snapshot and queue. Registered with the informers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from drachma.api import (
    csidriver,
    csinode,
    deviceclass,
    devicetaintrule,
    meta,
    namespace,
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
from drachma.api import node as nodes
from drachma.claims import podstate, reservation
from drachma.runtime import cache, informer
from drachma.scheduler import changes, deliberation, peers, queue, settings
from drachma.scheduler.framework.hints import Action, Change, Resource
from drachma.scheduler.snapshot import Snapshot, podinfo

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class Handlers:
    """Keeps the scheduler's state in step with the API."""

    def __init__(
        self,
        snapshot: Snapshot,
        waiting: queue.Queue,
        *,
        chosen: settings.Settings,
        others: peers.Peers | None = None,
    ) -> None:
        self._snapshot: Final = snapshot
        self._queue: Final = waiting
        self._settings: Final = chosen
        self._peers: Final = others
        self._claims: deliberation.Source[resourceclaim.ResourceClaim] | None = None

    def register(self, shared: deliberation.Sources) -> None:
        """Hear of everything that matters; nodes and devices before claims, and those before pods."""
        shared.of(namespace.Namespace).add_handler(
            informer.Handler(
                added=self._namespace_put, updated=self._namespace_updated, deleted=self._namespace_deleted
            )
        )
        self._register_workloads(shared)
        self._register_volumes(shared)
        if self._settings.has_gangs:
            shared.of(podgroup.PodGroup).add_handler(
                informer.Handler(added=self._group_added, updated=self._group_updated, deleted=self._group_deleted)
            )
        shared.of(poddisruptionbudget.PodDisruptionBudget).add_handler(
            informer.Handler(
                added=self._snapshot.budgets.put,
                updated=lambda _, new: self._snapshot.budgets.put(new),
                deleted=self._snapshot.budgets.remove,
            )
        )
        shared.of(nodes.Node).add_handler(
            informer.Handler(added=self._node_added, updated=self._node_updated, deleted=self._node_deleted)
        )
        shared.of(deviceclass.DeviceClass).add_handler(
            informer.Handler(added=self._class_added, updated=self._class_updated, deleted=self._class_deleted)
        )
        shared.of(devicetaintrule.DeviceTaintRule).add_handler(
            informer.Handler(
                added=self._snapshot.devices.put_rule, updated=self._rule_updated, deleted=self._rule_deleted
            )
        )
        shared.of(resourceslice.ResourceSlice).add_handler(
            informer.Handler(added=self._slice_added, updated=self._slice_updated, deleted=self._slice_deleted)
        )
        self._claims = shared.of(resourceclaim.ResourceClaim)
        self._claims.add_handler(
            informer.Handler(added=self._claim_added, updated=self._claim_updated, deleted=self._claim_deleted)
        )
        shared.of(pod.Pod).add_handler(
            informer.Handler(added=self._pod_added, updated=self._pod_updated, deleted=self._pod_deleted)
        )
        if self._peers is not None:
            self._peers.register(self._assign)

    def _register_workloads(self, shared: deliberation.Sources) -> None:
        workloads = self._snapshot.workloads
        shared.of(service.Service).add_handler(
            informer.Handler(
                added=workloads.put_service,
                updated=lambda _, new: workloads.put_service(new),
                deleted=workloads.remove_service,
            )
        )
        shared.of(replicaset.ReplicaSet).add_handler(
            informer.Handler(
                added=workloads.put_owner,
                updated=lambda _, new: workloads.put_owner(new),
                deleted=workloads.remove_owner,
            )
        )
        shared.of(statefulset.StatefulSet).add_handler(
            informer.Handler(
                added=workloads.put_owner,
                updated=lambda _, new: workloads.put_owner(new),
                deleted=workloads.remove_owner,
            )
        )

    def _register_volumes(self, shared: deliberation.Sources) -> None:
        volumes = self._snapshot.volumes
        self._register_storage(
            shared.of(storageclass.StorageClass),
            Resource.STORAGE_CLASS,
            put=volumes.put_class,
            drop=volumes.remove_class,
        )
        self._register_storage(
            shared.of(persistentvolume.PersistentVolume),
            Resource.PERSISTENT_VOLUME,
            put=volumes.put_volume,
            drop=volumes.remove_volume,
        )
        self._register_storage(
            shared.of(persistentvolumeclaim.PersistentVolumeClaim),
            Resource.PERSISTENT_VOLUME_CLAIM,
            put=volumes.put_claim,
            drop=volumes.remove_claim,
        )
        self._register_storage(
            shared.of(csidriver.CSIDriver), Resource.CSI_DRIVER, put=volumes.put_driver, drop=volumes.remove_driver
        )
        self._register_storage(
            shared.of(csinode.CSINode),
            Resource.CSI_NODE,
            put=volumes.put_driver_node,
            drop=volumes.remove_driver_node,
        )
        self._register_storage(
            shared.of(volumeattachment.VolumeAttachment),
            Resource.VOLUME_ATTACHMENT,
            put=volumes.put_attachment,
            drop=volumes.remove_attachment,
        )

    def _register_storage(
        self,
        source: deliberation.Source[ObjectT],
        resource: Resource,
        *,
        put: Callable[[ObjectT], None],
        drop: Callable[[ObjectT], None],
    ) -> None:
        def added(new: ObjectT) -> None:
            put(new)
            self._queue.wake(Change(resource, Action.ADD, None, new))

        def updated(old: ObjectT, new: ObjectT) -> None:
            put(new)
            self._queue.wake(Change(resource, Action.UPDATE, old, new))

        def deleted(gone: ObjectT) -> None:
            drop(gone)
            self._queue.wake(Change(resource, Action.DELETE, gone, None))

        source.add_handler(informer.Handler(added=added, updated=updated, deleted=deleted))

    # Namespaces

    def _namespace_put(self, new: namespace.Namespace) -> None:
        self._snapshot.namespaces[new.metadata.name] = new.metadata.labels

    def _namespace_updated(self, _old: namespace.Namespace, new: namespace.Namespace) -> None:
        self._namespace_put(new)

    def _namespace_deleted(self, gone: namespace.Namespace) -> None:
        self._snapshot.namespaces.pop(gone.metadata.name, None)

    # Nodes

    def _node_added(self, new: nodes.Node) -> None:
        self._snapshot.add_node(new)
        self._queue.wake(Change(Resource.NODE, Action.ADD, None, new))

    def _node_updated(self, old: nodes.Node, new: nodes.Node) -> None:
        self._snapshot.add_node(new)
        for change in changes.of_node(old, new):
            self._queue.wake(change)

    def _node_deleted(self, gone: nodes.Node) -> None:
        self._snapshot.remove_node(gone.metadata.name)

    # Devices

    def _class_added(self, new: deviceclass.DeviceClass) -> None:
        self._snapshot.devices.put_class(new)
        self._queue.wake(Change(Resource.DEVICE_CLASS, Action.ADD, None, new))

    def _class_updated(self, old: deviceclass.DeviceClass, new: deviceclass.DeviceClass) -> None:
        self._snapshot.devices.put_class(new)
        self._queue.wake(Change(Resource.DEVICE_CLASS, Action.UPDATE, old, new))

    def _class_deleted(self, gone: deviceclass.DeviceClass) -> None:
        self._snapshot.devices.remove_class(gone.metadata.name)

    def _slice_added(self, new: resourceslice.ResourceSlice) -> None:
        self._snapshot.devices.put_slice(new)
        self._queue.wake(Change(Resource.RESOURCE_SLICE, Action.ADD, None, new))

    def _slice_updated(self, old: resourceslice.ResourceSlice, new: resourceslice.ResourceSlice) -> None:
        self._snapshot.devices.put_slice(new)
        self._queue.wake(Change(Resource.RESOURCE_SLICE, Action.UPDATE, old, new))

    def _slice_deleted(self, gone: resourceslice.ResourceSlice) -> None:
        self._snapshot.devices.remove_slice(str(gone.metadata.name))

    def _rule_updated(self, _old: devicetaintrule.DeviceTaintRule, new: devicetaintrule.DeviceTaintRule) -> None:
        self._snapshot.devices.put_rule(new)
        self._queue.wake(Change(Resource.RESOURCE_SLICE, Action.UPDATE))

    def _rule_deleted(self, gone: devicetaintrule.DeviceTaintRule) -> None:
        self._snapshot.devices.remove_rule(gone.metadata.name)
        self._queue.wake(Change(Resource.RESOURCE_SLICE, Action.UPDATE))

    # Claims

    @property
    def _is_watching(self) -> bool:
        """Whether every state of a claim is told; a list may have skipped some."""
        return self._claims is not None and bool(self._claims.resource_version)

    def _claim_added(self, new: resourceclaim.ResourceClaim) -> None:
        self._snapshot.claims.observe(new, is_exact=self._is_watching)
        self._queue.wake(Change(Resource.RESOURCE_CLAIM, Action.ADD, None, new), claim=cache.key_of(new))

    def _claim_updated(self, old: resourceclaim.ResourceClaim, new: resourceclaim.ResourceClaim) -> None:
        self._snapshot.claims.observe(new, is_exact=self._is_watching)
        change = Change(Resource.RESOURCE_CLAIM, Action.UPDATE, old, new)
        self._queue.wake(change, claim=None if reservation.frees_devices(old, new) else cache.key_of(new))

    def _claim_deleted(self, gone: resourceclaim.ResourceClaim) -> None:
        metadata = gone.metadata
        # The write that ends a claim may be the one that takes its devices away: then its last state has none.
        before = self._snapshot.claims.get(metadata.namespace, metadata.name)
        self._snapshot.claims.remove(gone)
        if before is not None and before.metadata.uid == metadata.uid and before.status.allocation is not None:
            self._queue.wake(Change(Resource.RESOURCE_CLAIM, Action.DELETE, before, None))

    # Gangs

    def _group_added(self, new: podgroup.PodGroup) -> None:
        self._snapshot.gangs.put_group(new)
        self._queue.wake(Change(Resource.POD_GROUP, Action.ADD, None, new))

    def _group_updated(self, old: podgroup.PodGroup, new: podgroup.PodGroup) -> None:
        self._snapshot.gangs.put_group(new)
        if old.spec != new.spec:
            self._queue.wake(Change(Resource.POD_GROUP, Action.UPDATE, old, new))

    def _group_deleted(self, gone: podgroup.PodGroup) -> None:
        self._snapshot.gangs.remove_group(gone)

    def _count_member(self, old: pod.Pod | None, new: pod.Pod | None) -> None:
        """Take note of a pod in its gang; those of other schedulers do not count before they have a node."""
        if not self._settings.has_gangs:
            return
        gangs = self._snapshot.gangs
        if old is not None:
            gangs.remove_pod(old)
        if new is not None and (new.spec.node_name or self._is_ours(new)):
            gangs.put_pod(new)

    # Pods

    def _pod_added(self, new: pod.Pod) -> None:
        self._count_member(None, new)
        if new.spec.node_name:
            self._snapshot.add_pod(new)
            self._queue.wake(Change(Resource.ASSIGNED_POD, Action.ADD, None, new))
        elif self._is_ours(new):
            if self._is_responsible(new):
                self._queue.add(new)
                if self._settings.has_gangs:
                    self._queue.wake(Change(Resource.UNSCHEDULED_POD, Action.ADD, None, new), but=new.metadata.uid)
            if new.status.nominated_node_name:
                self._snapshot.nominations.put(podinfo.PodInfo(new), new.status.nominated_node_name)

    def _pod_updated(self, old: pod.Pod, new: pod.Pod) -> None:
        self._count_member(old, new)
        if new.spec.node_name:
            self._assigned_pod_updated(old, new)
            return
        if not self._is_ours(new):
            self._queue.delete(old)
            return
        if old.status.nominated_node_name != new.status.nominated_node_name:
            self._snapshot.nominations.put(podinfo.PodInfo(new), new.status.nominated_node_name)
        if self._snapshot.nodes.is_assumed(new.metadata.uid):
            return
        if self._is_responsible(new):
            self._queue.update(old, new)
        else:
            self._queue.delete(old)

    def _assigned_pod_updated(self, old: pod.Pod, new: pod.Pod) -> None:
        if not old.spec.node_name:
            self._queue.delete(old)
            self._snapshot.nominations.remove(old.metadata.uid)
        was_counted = self._snapshot.nodes.node_of(new.metadata.uid) is not None
        self._snapshot.add_pod(new)
        if podstate.has_ended(new):
            if was_counted:
                self._queue.wake(Change(Resource.ASSIGNED_POD, Action.DELETE, new, None))
        elif old.spec.node_name:
            for change in changes.of_assigned_pod(old, new):
                self._queue.wake(change)
        else:
            self._queue.wake(Change(Resource.ASSIGNED_POD, Action.ADD, None, new))

    def _pod_deleted(self, gone: pod.Pod) -> None:
        self._count_member(gone, None)
        uid = gone.metadata.uid
        if gone.spec.node_name:
            if self._snapshot.nodes.node_of(uid) is not None:
                self._snapshot.remove_pod(uid)
                self._queue.wake(Change(Resource.ASSIGNED_POD, Action.DELETE, gone, None))
            return
        self._queue.delete(gone)
        if self._snapshot.nominations.node_of(uid):
            self._snapshot.nominations.remove(uid)
            self._queue.wake(Change(Resource.ASSIGNED_POD, Action.DELETE, gone, None))

    def _assign(self, waiting: pod.Pod) -> None:
        """Have a pod in the queue where it is for this one of several schedulers to look after, and nowhere else."""
        if not self._is_ours(waiting) or self._snapshot.nodes.is_assumed(waiting.metadata.uid):
            return
        if not self._is_responsible(waiting):
            self._queue.delete(waiting)
        elif self._queue.find(cache.key_of(waiting)) is None:
            self._queue.add(waiting)

    def _is_responsible(self, waiting: pod.Pod) -> bool:
        return self._peers is None or self._peers.is_responsible(waiting)

    def _is_ours(self, waiting: pod.Pod) -> bool:
        wanted = waiting.spec.scheduler_name or settings.DEFAULT_NAME
        return wanted == self._settings.name and not podstate.has_ended(waiting)
