"""Features of the kubelet that pods need, under the names in which nodes declare them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from drachma.api import pod

RESTART_ALL: Final = "RestartAllContainersOnContainerExits"
POD_LEVEL_RESIZE: Final = "InPlacePodLevelResourcesVerticalScaling"
INIT_CONTAINER_RESIZE: Final = "InPlacePodVerticalScalingInitContainers"

_RESTART_ALL_ACTION: Final = "RestartAllContainers"
_NONE: Final[frozenset[str]] = frozenset()
_RESTART: Final = frozenset({RESTART_ALL})


def needed_by(subject: pod.Pod) -> frozenset[str]:
    """Return the features that a node must declare before a pod can run there."""
    spec = subject.spec
    for container in (*spec.containers, *spec.init_containers):
        for rule in container.restart_policy_rules:
            if rule.action == _RESTART_ALL_ACTION:
                return _RESTART
    return _NONE


def needed_for_resize(spec: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    """Return the features that the node of a pod must declare for a change of the pod's resources, sorted.

    Specs are plain documents. A change of the resources of ordinary containers and of sidecars needs none.
    """
    features: list[str] = []
    if (spec.get("resources") or {}) != (old.get("resources") or {}):
        features.append(POD_LEVEL_RESIZE)
    before = {each.get("name"): each for each in old.get("initContainers") or ()}
    if any(
        (each.get("resources") or {}) != (before.get(each.get("name"), {}).get("resources") or {})
        for each in spec.get("initContainers") or ()
        if each.get("restartPolicy") != "Always"
    ):
        features.append(INIT_CONTAINER_RESIZE)
    return features
