"""The status of a node as its agent reports it. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from drachma.api import kubernetesversion, meta, node
from drachma.claims import conditions
from drachma.node.registration.addresses import NodeAddress
from drachma.node.registration.machine import Machine
from drachma.values import quantity

READY: Final = "Ready"

_FACTS: Final = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    READY: ("True", "KubeletReady", "kubelet is posting ready status"),
}
"""Conditions of a node whose agent runs: type, then status, reason and message."""


class OwnPart(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a stored status that the agent is responsible for, without the times of heartbeats."""

    conditions: tuple[node.NodeCondition, ...]
    capacity: Mapping[str, quantity.Quantity]
    allocatable: Mapping[str, quantity.Quantity]
    declared_features: tuple[str, ...]


def own_part(status: node.NodeStatus) -> OwnPart:
    """Return the part of a stored status to compare with the last report."""
    return OwnPart(
        conditions=tuple(
            structs.replace(each, last_heartbeat_time=None) for each in status.conditions if each.type in _FACTS
        ),
        capacity=status.capacity,
        allocatable=status.allocatable,
        declared_features=status.declared_features,
    )


def is_ready(status: node.NodeStatus) -> bool:
    """Return True if the stored status says that the node is ready."""
    condition = conditions.find(status.conditions, READY)
    return condition is not None and condition.status == _FACTS[READY][0]


class NodeStatus:
    """Status of one node, written as a strategic merge patch."""

    def __init__(self, machine: Machine, *, address: NodeAddress | None, runtime: str, features: Sequence[str]) -> None:
        """``runtime`` is the container runtime's name; ``features`` are declared in addition to the machine's."""
        self._described: Final[dict[str, Any]] = machine.node.get("status") or {}
        self._name: Final = machine.name
        self._address: Final = address
        self._runtime: Final = runtime
        self._features: Final = features

    def content(self, status: node.NodeStatus, *, now: dt.datetime) -> dict[str, Any]:
        """Return the status to write over a stored one; conditions that do not change keep their transition time."""
        info = {
            "containerRuntimeVersion": self._runtime,
            "kubeletVersion": kubernetesversion.TEXT,
            **(self._described.get("nodeInfo") or {}),
        }
        declared = sorted({*(self._described.get("declaredFeatures") or ()), *self._features})
        return {
            **self._described,
            "conditions": [self._condition(kind, status, now=now) for kind in _FACTS],
            "nodeInfo": info,
            "declaredFeatures": declared,
            **self._endpoint(),
        }

    def _condition(self, kind: str, status: node.NodeStatus, *, now: dt.datetime) -> dict[str, Any]:
        value, reason, message = _FACTS[kind]
        before = conditions.find(status.conditions, kind)
        condition = conditions.document(kind, value, reason=reason, message=message, now=now, before=before)
        return {**condition, "lastHeartbeatTime": meta.time_text(now)}

    def _endpoint(self) -> dict[str, Any]:
        """Return the addresses and the port of the node's endpoint; empty without one."""
        if self._address is None:
            return {}
        return {
            "addresses": [
                {"type": "InternalIP", "address": self._address.host},
                {"type": "Hostname", "address": self._name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._address.port}},
        }
