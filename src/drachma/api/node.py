"""Node: the fields that scheduling and node lifecycle read. A partial view."""

from collections.abc import Mapping
from typing import Final

import msgspec

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Int64, Struct
from drachma.values import quantity

SIMULATED_RUNTIME: Final = "simulated://"
"""Beginning of the container runtime of nodes whose containers are simulated: their pods have no network."""


class Taint(Struct, frozen=True, kw_only=True):
    """A mark that repels pods without a matching toleration."""

    key: str = ABSENT_TEXT
    value: str = ABSENT_TEXT
    effect: str = ABSENT_TEXT
    time_added: meta.Time | None = None


class NodeSpec(Struct, frozen=True, kw_only=True):
    """Taints and schedulability of the node, and its machine."""

    provider_id: str = msgspec.field(default=ABSENT_TEXT, name="providerID")
    unschedulable: bool | None = None
    taints: tuple[Taint, ...] = ABSENT_TUPLE


class NodeCondition(Struct, frozen=True, kw_only=True):
    """One observed aspect of the node's state."""

    type: str = ABSENT_TEXT
    status: str = ABSENT_TEXT
    last_heartbeat_time: meta.Time | None = None
    last_transition_time: meta.Time | None = None
    reason: str = ABSENT_TEXT
    message: str = ABSENT_TEXT


class ContainerImage(Struct, frozen=True, kw_only=True):
    """An image that the node has, by all its names."""

    names: tuple[str, ...] = ABSENT_TUPLE
    size_bytes: Int64 = ABSENT_INT


class NodeStatus(Struct, frozen=True, kw_only=True):
    """Capacity, conditions, addresses and images of the node."""

    capacity: Mapping[str, quantity.Quantity] = ABSENT_MAP
    allocatable: Mapping[str, quantity.Quantity] = ABSENT_MAP
    conditions: tuple[NodeCondition, ...] = ABSENT_TUPLE
    images: tuple[ContainerImage, ...] = ABSENT_TUPLE
    declared_features: tuple[str, ...] = ABSENT_TUPLE


class Node(meta.Object, frozen=True, kw_only=True):
    """Core Node, cluster-scoped; a partial view."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
