"""Devices that claims use on a node, and the two checks that come before a claim is prepared. Pure.

KEP-4381 asks every driver to check that allocated devices are still available when a claim is prepared: a claim may
have been allocated from an old slice, or by hand. Drivers and node agents use the same rules and the same messages; a
message that begins with :data:`UNAVAILABLE` says that only another allocation can help.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from drachma.allocator import placement
from drachma.api import resourceclaim, resourceslice
from drachma.claims import standins

UNAVAILABLE: Final = "device unavailable: "
"""Beginning of a driver's error for a claim whose devices are gone."""


class DeviceUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A device that a claim uses; ``share_id`` is set for a device that several claims share."""

    driver: str
    pool: str
    device: str
    share_id: str | None = None
    has_admin_access: bool = False

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"

    def excludes(self, other: DeviceUse) -> bool:
        """Return True if two claims cannot have these uses at the same time."""
        if self.driver != other.driver or self.device != other.device or not _is_same_pool(self.pool, other.pool):
            return False
        if self.has_admin_access or other.has_admin_access:
            return False
        return self.share_id is None or other.share_id is None


class Holder(NamedTuple):
    """A claim that is prepared, or whose preparation began, with its devices."""

    namespace: str
    name: str
    uid: str
    uses: Sequence[DeviceUse]


class PublishedDevice(NamedTuple):
    """A device of a driver that a node can use."""

    pool: str
    device: str


def claim_uses(claim: resourceclaim.ResourceClaim, driver: str = "") -> tuple[DeviceUse, ...]:
    """Return the devices of an allocated claim; those of one driver if it is named."""
    allocation = claim.status.allocation
    results = () if allocation is None else allocation.devices.results
    return tuple(
        DeviceUse(
            driver=each.driver,
            pool=each.pool,
            device=each.device,
            share_id=each.share_id,
            has_admin_access=bool(each.admin_access),
        )
        for each in results
        if not driver or each.driver == driver
    )


def published(slices: Iterable[resourceslice.ResourceSlice], node: placement.Node) -> set[PublishedDevice]:
    """Return the devices in slices of one driver that a node can use. Slices of old generations do not count.

    Raises:
        errors.AllocationError: a node selector does not compile.
    """
    by_pool: dict[str, list[resourceslice.ResourceSliceSpec]] = {}
    for each in slices:
        by_pool.setdefault(each.spec.pool.name, []).append(each.spec)
    devices: set[PublishedDevice] = set()
    for pool, specs in by_pool.items():
        newest = max(spec.pool.generation for spec in specs)
        for spec in specs:
            if spec.pool.generation == newest:
                devices.update(PublishedDevice(pool, device.name) for device in _usable(spec, node))
    return devices


def find_missing(uses: Iterable[DeviceUse], devices: set[PublishedDevice]) -> list[DeviceUse]:
    """Return the uses of devices that are not published."""
    return [each for each in uses if PublishedDevice(each.pool, each.device) not in devices]


def unavailable(uses: Sequence[DeviceUse], node: str) -> str:
    """Return the message about devices that are not published for a node."""
    verb = "is" if len(uses) == 1 else "are"
    return f"{UNAVAILABLE}{', '.join(map(str, uses))} {verb} not published for node {node}"


def is_unavailable(message: str) -> bool:
    """Return True if a driver's error says that devices of a claim are gone."""
    return message.startswith(UNAVAILABLE)


def find_conflict(uses: Iterable[DeviceUse], holders: Iterable[Holder]) -> str:
    """Return the message about the first device that another claim uses exclusively; empty if there is none."""
    for holder in holders:
        for use in uses:
            if any(use.excludes(other) for other in holder.uses):
                return (
                    f"device in use: {use} is prepared for ResourceClaim {holder.namespace}/{holder.name} "
                    f"(uid {holder.uid}), and free when that claim is unprepared"
                )
    return ""


def _usable(spec: resourceslice.ResourceSliceSpec, node: placement.Node) -> Iterable[resourceslice.Device]:
    if spec.per_device_node_selection:
        return [
            device
            for device in spec.devices
            if placement.Placement(device.node_name, all_nodes=device.all_nodes, selector=device.node_selector).covers(
                node
            )
        ]
    covers = placement.Placement(spec.node_name, all_nodes=spec.all_nodes, selector=spec.node_selector).covers(node)
    return spec.devices if covers else ()


def _is_same_pool(first: str, second: str) -> bool:
    """Return True for one pool, and for a pool and the stand-in of its driver's first alpha on the same node."""
    return first == second or standins.is_stand_in(first) != standins.is_stand_in(second)
