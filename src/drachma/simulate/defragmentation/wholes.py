"""Wholes: nodes or devices that are worth having in one piece, and the pods that use a part of them.

With the goal ``nodes``, a whole is all devices of a node. With the goal ``devices``, a whole is a device that can be
used in parts: the partitions that draw from the same counter sets, or a device that claims share. Devices that several
nodes can use belong to no whole.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from drachma.allocator import pool
from drachma.allocator import view as views
from drachma.api import pod, resourceclaim
from drachma.claims import identity
from drachma.scheduler.snapshot import Snapshot, nodeinfo


class Goal(enum.StrEnum):
    """Sort of units that defragmentation brings back."""

    NODES = "nodes"
    DEVICES = "devices"


class Whole(NamedTuple):
    """Devices of one node that are worth having free at the same time."""

    node: str
    name: str
    """Counter sets or device; empty for all devices of the node."""
    devices: frozenset[identity.DeviceID]

    @property
    def title(self) -> str:
        """Name in plans."""
        return f"device {self.name} of node {self.node}" if self.name else f"node {self.node}"

    @property
    def key(self) -> str:
        """Short unique name."""
        return f"{self.node}/{self.name}" if self.name else self.node


def find(snapshot: Snapshot, goal: Goal, *, driver: str = "") -> list[Whole]:
    """Return the wholes of a cluster by node and name, of one driver or of all."""
    return [
        whole
        for info in sorted(snapshot.nodes, key=lambda info: info.name)
        for whole in _node_wholes(snapshot, info, goal, driver)
    ]


def _node_wholes(snapshot: Snapshot, info: nodeinfo.NodeInfo, goal: Goal, driver: str) -> Iterator[Whole]:
    blocks = [
        (block, sum(1 << place for place, owner in enumerate(block.owners) if owner.node_name == info.name))
        for block in snapshot.devices.view(info).blocks
        if not driver or block.pool_id.driver == driver
    ]
    if goal is Goal.NODES:
        devices = frozenset(block.device_id(place) for block, own in blocks for place in views.positions(own))
        if devices:
            yield Whole(info.name, "", devices)
        return
    for block, own in blocks:
        for name, mask in _divisible(block, own):
            yield Whole(info.name, name, frozenset(map(block.device_id, views.positions(mask))))


def _divisible(block: pool.Block, own: int) -> Iterator[tuple[str, int]]:
    """Yield the devices of a block that can be used in parts, with their names."""
    families: list[tuple[set[str], int]] = []
    for place in views.positions(block.consuming & own):
        sets = {each.counter_set for each in block.devices[place].consumes_counters}
        mask = 1 << place
        separate = []
        for family, others in families:
            if family & sets:
                sets, mask = sets | family, mask | others
            else:
                separate.append((family, others))
        families = [*separate, (sets, mask)]
    for sets, mask in families:
        yield "+".join(sorted(sets)), mask
    for place in views.positions(block.shared & own & ~block.consuming):
        yield block.devices[place].name, 1 << place


class Users(NamedTuple):
    """Users of devices at one moment."""

    claims: dict[identity.DeviceID, list[resourceclaim.ResourceClaim]]
    """Claims of each device in use."""
    pods: dict[str, pod.Pod]
    """Pods on nodes, by uid."""

    def claims_of(self, devices: Iterable[identity.DeviceID]) -> list[resourceclaim.ResourceClaim]:
        """Return the claims that hold some of these devices, by name."""
        claims = {claim.metadata.uid: claim for each in devices for claim in self.claims.get(each, ())}
        return sorted(claims.values(), key=lambda claim: identity.label(claim.metadata))

    def is_free(self, whole: Whole) -> bool:
        """Return True if no claim holds a part of a whole."""
        return self.claims.keys().isdisjoint(whole.devices)

    def pods_of(self, claims: Iterable[resourceclaim.ResourceClaim]) -> list[pod.Pod]:
        """Return the pods on nodes that use some of these claims, by name."""
        pods = {
            each.uid: self.pods[each.uid]
            for claim in claims
            for each in claim.status.reserved_for
            if each.uid in self.pods
        }
        return sorted(pods.values(), key=lambda each: identity.label(each.metadata))


def users(snapshot: Snapshot) -> Users:
    """Return the users of all devices. Administrative access does not count as use."""
    claims: dict[identity.DeviceID, list[resourceclaim.ResourceClaim]] = {}
    for claim in snapshot.claims:
        if claim.status.allocation is None:
            continue
        for result in claim.status.allocation.devices.results:
            if not result.admin_access:
                claims.setdefault(identity.device_of(result), []).append(claim)
    pods = {uid: booking.pod for info in snapshot.nodes for uid, booking in info.ledger.bookings.items()}
    return Users(claims, pods)
