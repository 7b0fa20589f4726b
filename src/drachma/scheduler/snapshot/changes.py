"""Changes in the cluster that can help waiting pods, in the terms of queueing hints."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from drachma.accounting import requests
from drachma.api import compositepodgroup, devicetaintrule, pod, podgroup
from drachma.api import node as nodes


class Resource(enum.StrEnum):
    """Kind of the changed object. A target pod is the waiting pod itself."""

    ASSIGNED_POD = "AssignedPod"
    TARGET_POD = "Pod"
    UNSCHEDULED_POD = "UnscheduledPod"
    """Another waiting pod."""
    POD_GROUP = "PodGroup"
    NODE = "Node"
    RESOURCE_CLAIM = "ResourceClaim"
    DEVICE_CLASS = "DeviceClass"
    RESOURCE_SLICE = "ResourceSlice"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    VOLUME_ATTACHMENT = "VolumeAttachment"


class Action(enum.Flag):
    """Sort of change."""

    ADD = enum.auto()
    DELETE = enum.auto()
    UPDATE = enum.auto()
    UPDATE_NODE_ALLOCATABLE = enum.auto()
    UPDATE_NODE_DECLARED_FEATURE = enum.auto()
    UPDATE_NODE_LABEL = enum.auto()
    UPDATE_NODE_TAINT = enum.auto()
    UPDATE_POD_GATES = enum.auto()
    UPDATE_POD_GENERATED_CLAIM = enum.auto()
    UPDATE_POD_LABEL = enum.auto()
    UPDATE_POD_SCALE_DOWN = enum.auto()
    UPDATE_POD_TOLERATION = enum.auto()


_LABELS = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE: "Update",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_POD_GATES: "UpdatePodSchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_CLAIM: "UpdatePodGeneratedResourceClaim",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_TOLERATION: "UpdatePodToleration",
}


class Change(msgspec.Struct, frozen=True):
    """One change. ``old`` is None for a new object, and ``new`` for a deleted one."""

    resource: Resource
    action: Action
    old: Any = None
    new: Any = None

    @property
    def label(self) -> str:
        """Name of the change in metrics and logs."""
        return f"{self.resource}{_LABELS[self.action]}"


Changes: TypeAlias = Callable[[Any, Any], Iterator[Change]]
"""Function that yields the changes between two versions of an object; the first is None if it is new, the second if it
is gone."""


def no_changes(_old: object, _new: object) -> Iterator[Change]:
    """Yield nothing: no pod waits for objects of this kind."""
    yield from ()


def every_change(resource: Resource) -> Changes:
    """Return a function that yields each addition, update and deletion of a resource."""

    def changes(old: Any, new: Any) -> Iterator[Change]:
        action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
        yield Change(resource, action, old, new)

    return changes


def additions_and_updates(resource: Resource) -> Changes:
    """Return a function that yields additions and updates of a resource whose deletion helps no pod."""

    def changes(old: Any, new: Any) -> Iterator[Change]:
        if new is not None:
            yield Change(resource, Action.ADD if old is None else Action.UPDATE, old, new)

    return changes


def rule_changes(
    old: devicetaintrule.DeviceTaintRule | None, new: devicetaintrule.DeviceTaintRule | None
) -> Iterator[Change]:
    """Yield the change of devices that a changed or deleted taint rule means; a new rule only takes devices away."""
    if old is not None:
        yield Change(Resource.RESOURCE_SLICE, Action.UPDATE)


Group = podgroup.PodGroup | compositepodgroup.CompositePodGroup


def group_changes(old: Group | None, new: Group | None) -> Iterator[Change]:
    """Yield the change of a pod group, or of a composite one, whose spec is new."""
    if new is not None and old is None:
        yield Change(Resource.POD_GROUP, Action.ADD, None, new)
    elif new is not None and old is not None and old.spec != new.spec:
        yield Change(Resource.POD_GROUP, Action.UPDATE, old, new)


def node_changes(old: nodes.Node | None, new: nodes.Node | None) -> Iterator[Change]:
    """Yield the changes of a node that can help a pod."""
    if new is None:
        return
    if old is None:
        yield Change(Resource.NODE, Action.ADD, None, new)
        return
    if old.status.allocatable != new.status.allocatable:
        yield Change(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE, old, new)
    if old.status.declared_features != new.status.declared_features:
        yield Change(Resource.NODE, Action.UPDATE_NODE_DECLARED_FEATURE, old, new)
    if old.metadata.labels != new.metadata.labels:
        yield Change(Resource.NODE, Action.UPDATE_NODE_LABEL, old, new)
    if old.spec.taints != new.spec.taints or (old.spec.unschedulable and not new.spec.unschedulable):
        yield Change(Resource.NODE, Action.UPDATE_NODE_TAINT, old, new)


def waiting_pod_changes(old: pod.Pod, new: pod.Pod) -> Iterator[Change]:
    """Yield the changes of a waiting pod that can help itself."""
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        # Tolerations can only be added.
        yield Change(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION, old, new)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        yield Change(Resource.TARGET_POD, Action.UPDATE_POD_GATES, old, new)
    if (
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
    ):
        yield Change(Resource.TARGET_POD, Action.UPDATE_POD_GENERATED_CLAIM, old, new)
    if old.metadata.labels != new.metadata.labels:
        yield Change(Resource.TARGET_POD, Action.UPDATE_POD_LABEL, old, new)
    if _is_smaller(old, new):
        yield Change(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN, old, new)


def assigned_pod_changes(old: pod.Pod, new: pod.Pod) -> Iterator[Change]:
    """Yield the changes of a pod on a node that can help other pods."""
    if old.metadata.labels != new.metadata.labels:
        yield Change(Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL, old, new)
    if _is_smaller(old, new):
        yield Change(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN, old, new)


def _is_smaller(old: pod.Pod, new: pod.Pod) -> bool:
    if old.spec == new.spec:
        return False
    before, after = requests.total(old), requests.total(new)
    return any(amount > after.get(name, 0) for name, amount in before.items())
