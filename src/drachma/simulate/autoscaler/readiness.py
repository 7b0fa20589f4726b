"""Readiness of nodes of a group: a node is on its way until the scheduler can place pods on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from drachma.api import node as nodes
from drachma.api import resourceslice
from drachma.claims import conditions, taints
from drachma.simulate import nodegroup

_STARTUP_TAINTS: Final = frozenset(
    {
        taints.NOT_READY,
        taints.UNREACHABLE,
        "node.kubernetes.io/network-unavailable",
        "node.cloudprovider.kubernetes.io/uninitialized",
    }
)
"""Taints that a node has until its kubelet, its network and its cloud have reported."""


def is_complete(member: nodes.Node, group: nodegroup.NodeGroup, slices: Iterable[resourceslice.ResourceSlice]) -> bool:
    """Return True if a node is ready and all drivers of its group have published slices for it."""
    ready = conditions.find(member.status.conditions, "Ready")
    if ready is not None and ready.status != "True":
        return False
    if any(taint.key in _STARTUP_TAINTS for taint in member.spec.taints):
        return False
    drivers = {each.spec.driver for each in group.slices}
    return drivers <= {each.spec.driver for each in slices if each.spec.node_name == member.metadata.name}
