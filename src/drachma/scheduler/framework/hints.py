"""Queueing hints: which changes in the cluster can help a pod that was rejected, so that only they wake it.

Every plugin names the changes that can turn its rejection around, and for each a test that knows the pod and the
change. The queue asks only the plugins that rejected a pod.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

from drachma.api import pod


class Resource(enum.StrEnum):
    """What changed; a target pod is the pod that waits."""

    ASSIGNED_POD = "AssignedPod"
    TARGET_POD = "Pod"
    UNSCHEDULED_POD = "UnscheduledPod"
    """Another pod that waits."""
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
    """How it changed."""

    ADD = enum.auto()
    DELETE = enum.auto()
    UPDATE = enum.auto()
    UPDATE_NODE_ALLOCATABLE = enum.auto()
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
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_POD_GATES: "UpdatePodSchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_CLAIM: "UpdatePodGeneratedResourceClaim",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_TOLERATION: "UpdatePodToleration",
}


class Change(NamedTuple):
    """One change; ``old`` is None for what is new, ``new`` for what is gone."""

    resource: Resource
    action: Action
    old: Any = None
    new: Any = None

    @property
    def label(self) -> str:
        """How metrics and logs call it."""
        return f"{self.resource}{_LABELS[self.action]}"


class Hint(NamedTuple):
    """A kind of change that a plugin's rejection can hang on, and the test whether one of them helps a pod."""

    resource: Resource
    actions: Action
    helps: Callable[[pod.Pod, Any, Any], bool]


def always(_pod: pod.Pod, _old: object, _new: object) -> bool:
    """The test of a change that helps any pod."""
    return True
