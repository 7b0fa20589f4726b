"""Usage of a node: of its own resources, and of its local devices."""

from __future__ import annotations

from typing import NamedTuple

from drachma.api import resourceslice
from drachma.claims import identity
from drachma.scheduler.snapshot import Snapshot, nodeinfo


class NodeUsage(NamedTuple):
    """Used shares of a node, between 0 and 1."""

    node: str
    resources: dict[str, float]
    """Requested share of each resource that the node has."""
    devices: int
    used_devices: int
    """Number of devices in use, wholly or partly."""

    @property
    def share(self) -> float:
        """Largest share."""
        of_devices = self.used_devices / self.devices if self.devices else 0.0
        return max([of_devices, *self.resources.values()], default=0.0)


def of(snapshot: Snapshot, info: nodeinfo.NodeInfo) -> NodeUsage:
    """Return the usage of a node."""
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
    """Return the slices of a node alone."""
    return [each.slice for each in snapshot.devices.catalog.near(node) if each.node_name == node]
