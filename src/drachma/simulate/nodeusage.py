"""How much of a node is in use: of its own resources, and of the devices that are on it and nowhere else."""

from __future__ import annotations

from typing import NamedTuple

from drachma.api import resourceslice
from drachma.claims import identity
from drachma.scheduler.snapshot import Snapshot, nodeinfo


class NodeUsage(NamedTuple):
    """What is taken of a node. Shares are between 0 and 1."""

    node: str
    resources: dict[str, float]
    """The share of each resource that pods request, of those that the node has."""
    devices: int
    used_devices: int
    """How many of its devices are in use, in whole or in part."""

    @property
    def share(self) -> float:
        """The largest share of anything."""
        of_devices = self.used_devices / self.devices if self.devices else 0.0
        return max([of_devices, *self.resources.values()], default=0.0)


def of(snapshot: Snapshot, info: nodeinfo.NodeInfo) -> NodeUsage:
    """The usage of a node."""
    account = info.ledger
    resources = {
        name: account.requested.get(name, 0) / amount for name, amount in account.allocatable.items() if amount
    }
    if account.allowed_pods:
        resources["pods"] = len(account.bookings) / account.allowed_pods
    devices = [
        identity.DeviceID(str(each.spec.driver), str(each.spec.pool.name), device.name)
        for each in own_slices(snapshot, info.name)
        for device in each.spec.devices
    ]
    used = sum(map(snapshot.devices.state.is_allocated, devices))
    return NodeUsage(info.name, resources, len(devices), used)


def own_slices(snapshot: Snapshot, node: str) -> list[resourceslice.ResourceSlice]:
    """The slices of a node alone."""
    return [each.slice for each in snapshot.devices.catalog.near(node) if each.node_name == node]
