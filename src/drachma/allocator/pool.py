"""Pools: the slices of one driver and pool name as one node sees them, ready to be searched.

A :class:`SliceRecord` is one published slice with what is worth computing once; the catalog keeps them. A
:class:`Block` is the devices of a pool that one node may be given, in search order: slices by name, devices as
listed. Nodes that see the same slices of a pool share the block, and with it all verdicts cached in it.

A block can be invalid (device names twice, counters that do not exist); nothing is allocated from it then.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final

from drachma.allocator import counters, placement
from drachma.api import resourceslice, struct
from drachma.claims import identity, standins

_REMEMBERED: Final = 2048


class SliceRecord:
    """One slice of the catalog; immutable."""

    __slots__ = ("device_placements", "name", "placement", "pool_id", "slice", "spec", "uses_groups")

    def __init__(self, published: resourceslice.ResourceSlice) -> None:
        spec = published.spec
        self.slice = published
        self.spec = spec
        self.name = str(published.metadata.name)
        self.pool_id = identity.PoolID(spec.driver, spec.pool.name)
        self.placement = placement.Placement(spec.node_name, all_nodes=spec.all_nodes, selector=spec.node_selector)
        self.uses_groups = counters.uses_groups(published)
        self.device_placements: tuple[placement.Placement, ...] = ()
        if spec.per_device_node_selection:
            self.device_placements = tuple(
                placement.Placement(device.node_name, all_nodes=device.all_nodes, selector=device.node_selector)
                for device in spec.devices
            )

    @property
    def node_name(self) -> str:
        """Name of the only node that the slice is for, or an empty text."""
        return self.spec.node_name or ""


class Block:
    """The devices of a pool that a node may be given. Sets of devices are integers, bit 0 is the first device."""

    __slots__ = (
        "cache",
        "conditional",
        "consuming",
        "counters",
        "devices",
        "everything",
        "has_binding_conditions",
        "index",
        "invalid",
        "is_stand_in",
        "owners",
        "placed",
        "pool_id",
        "shared",
        "skipping",
        "stand_ins",
        "tainted",
    )

    def __init__(
        self,
        pool_id: identity.PoolID,
        targeting: Iterable[SliceRecord],
        *,
        elsewhere: Iterable[SliceRecord] = (),
        partitionable: bool,
    ) -> None:
        """``targeting`` are the slices for the node, ``elsewhere`` the rest of the pool where that matters."""
        self.pool_id = pool_id
        self.cache: dict[Any, Any] = {}
        """Values that other modules computed for this block, by keys of their own."""
        ordered = sorted(targeting, key=lambda record: record.name)
        elsewhere_records = list(elsewhere)
        counter_slices: list[SliceRecord] = []
        if partitionable:
            counter_slices = [record for record in (*ordered, *elsewhere_records) if record.spec.shared_counters]
            ordered = [record for record in ordered if not record.spec.shared_counters]
            elsewhere_records = [record for record in elsewhere_records if not record.spec.shared_counters]
        self.owners: tuple[SliceRecord, ...] = tuple(record for record in ordered for _ in record.spec.devices)
        self.devices: tuple[resourceslice.Device, ...] = tuple(
            device for record in ordered for device in record.spec.devices
        )
        self.counters: counters.CounterTable | None = None
        self.invalid = self._duplicate_name()
        if partitionable and not self.invalid:
            try:
                self.counters = counters.CounterTable(
                    (record.slice for record in counter_slices),
                    self.devices,
                    elsewhere=(device for record in elsewhere_records for device in record.spec.devices),
                )
            except counters.InvalidCountersError as error:
                self.invalid = str(error)
        if self.invalid:
            self.devices = self.owners = ()
        self._survey()

    def _duplicate_name(self) -> str:
        names: set[str] = set()
        for device in self.devices:
            if device.name in names:
                return f"duplicate device name {device.name}"
            names.add(device.name)
        return ""

    def _survey(self) -> None:
        self.index = {device.name: place for place, device in enumerate(self.devices)}
        self.everything = (1 << len(self.devices)) - 1
        self.is_stand_in = standins.is_stand_in(self.pool_id.pool)
        nodes = () if self.is_stand_in else tuple(dict.fromkeys(owner.node_name for owner in self.owners))
        self.stand_ins = tuple((standins.pool_id(self.pool_id.driver, node), node) for node in nodes)
        """The stand-ins that may have some of its devices too, each with the node that those are for."""
        self.conditional = self.shared = self.tainted = self.consuming = self.skipping = self.placed = 0
        self.has_binding_conditions = False
        for place, device in enumerate(self.devices):
            bit = 1 << place
            if not struct.is_absent(device.binding_conditions):
                self.has_binding_conditions = True
                self.conditional |= bit if device.binding_conditions else 0
            if device.allow_multiple_allocations:
                self.shared |= bit
            if device.taints:
                self.tainted |= bit
            if device.consumes_counters:
                self.consuming |= bit
            owner = self.owners[place]
            if owner.spec.skip_node_operations:
                self.skipping |= bit
            if owner.device_placements:
                self.placed |= bit

    def remember(self, key: Hashable, value: object) -> None:
        """Keep something in the cache, which does not grow for ever."""
        if len(self.cache) >= _REMEMBERED:
            self.cache.clear()
        self.cache[key] = value

    def placement_of(self, place: int) -> placement.Placement:
        """Return the placement of a device in a slice with per-device node selection."""
        owner = self.owners[place]
        # Devices of a slice are neighbours in the block.
        return owner.device_placements[place - self.owners.index(owner)]

    def device_id(self, place: int) -> identity.DeviceID:
        """Return the identity of a device."""
        return identity.DeviceID(self.pool_id.driver, self.pool_id.pool, self.devices[place].name)
