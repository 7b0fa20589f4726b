"""View: all devices that one node can use, numbered in the order in which a search tries them.

A view is the pools of a node one after the other. A device is a *position*, a set of devices is an integer with the
bits of its positions, and the lowest bit is the device that a search tries first. Views are made by the catalog and
live until a slice that they show changes; what is computed for a view is kept in it.
"""

from __future__ import annotations

import bisect
import copy
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

from drachma import errors
from drachma.allocator import attributes, gathering, occurrences, placement, pool
from drachma.api import resourceclaim, resourceslice
from drachma.claims import identity

_REMEMBERED: Final = 1024


def positions(mask: int) -> Iterator[int]:
    """Yield the members of a set of devices, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class View:
    """The devices of a node. Blocks without devices (of invalid pools) are in it too."""

    __slots__ = (
        "_columns",
        "blocks",
        "cache",
        "consuming",
        "depends_on",
        "invalid",
        "misplaced",
        "node",
        "offsets",
        "placement_errors",
        "pools",
        "revision",
        "shared",
        "skipping",
    )

    def __init__(
        self,
        node: placement.Node,
        pools: tuple[gathering.GatheredPool, ...],
        *,
        depends_on: Mapping[identity.PoolID | str, int],
        revision: int,
    ) -> None:
        self.node = node
        self.pools = pools
        self.depends_on = depends_on
        self.revision = revision
        self.cache: dict[Any, Any] = {}
        """Values that other modules computed for this view, by keys of their own."""
        self._columns: dict[tuple[str, bool], AttributeColumn] = {}
        self.blocks = tuple(entry.block for entry in pools if entry.block is not None)
        self.invalid = any(block.invalid for block in self.blocks)
        offsets: list[int] = []
        size = shareable = consuming = skipping = 0
        for block in self.blocks:
            offsets.append(size)
            shareable |= block.shared << size
            consuming |= block.consuming << size
            skipping |= block.skipping << size
            size += len(block.devices)
        self.offsets = tuple(offsets)
        self.shared = shareable
        self.skipping = skipping
        self.consuming = consuming
        self.misplaced = 0
        self.placement_errors: dict[int, str] = {}
        self._place()
        self._sort_out_doubles()

    def _place(self) -> None:
        """Sort out the devices that choose their nodes themselves and do not mean this one."""
        for block, offset in zip(self.blocks, self.offsets, strict=True):
            for place in positions(block.placed):
                try:
                    if not block.placement_of(place).covers(self.node):
                        self.misplaced |= 1 << (place + offset)
                except errors.AllocationError as error:
                    self.placement_errors[place + offset] = str(error)

    def _sort_out_doubles(self) -> None:
        """Sort out devices of stand-ins that are published in another pool as well: they are there already."""
        for block, offset in zip(self.blocks, self.offsets, strict=True):
            if not block.is_stand_in:
                continue
            for neighbour in self.blocks:
                if neighbour.is_stand_in or neighbour.pool_id.driver != block.pool_id.driver:
                    continue
                for name in block.index.keys() & neighbour.index.keys():
                    place = block.index[name]
                    if block.owners[place].node_name == neighbour.owners[neighbour.index[name]].node_name:
                        self.misplaced |= 1 << (place + offset)

    @property
    def natural(self) -> View:
        """View of the same devices in upstream's order."""
        return self

    def arrange(self, mask: int) -> int:
        """Convert a set of devices from upstream's order to the order of this view."""
        return mask

    def remember(self, key: Hashable, value: object) -> None:
        """Keep something in the cache, which does not grow for ever."""
        if len(self.cache) >= _REMEMBERED:
            self.cache.clear()
        self.cache[key] = value

    def locate(self, position: int) -> tuple[pool.Block, int]:
        """Return the block of a device, and its index there."""
        number = bisect.bisect_right(self.offsets, position) - 1
        return self.blocks[number], position - self.offsets[number]

    def device(self, position: int) -> resourceslice.Device:
        """Return the device as published, with the taints of rules."""
        block, place = self.locate(position)
        return block.devices[place]

    def device_id(self, position: int) -> identity.DeviceID:
        """Return the identity of a device."""
        block, place = self.locate(position)
        return block.device_id(place)

    def find(self, result: resourceclaim.DeviceRequestAllocationResult) -> resourceslice.Device | None:
        """Return the device of an allocation result, or None if the node does not see it."""
        for block in self.blocks:
            if block.pool_id == (result.driver, result.pool):
                place = block.index.get(result.device)
                return None if place is None else block.devices[place]
        return None

    def owner(self, position: int) -> pool.SliceRecord:
        """Return the slice of a device."""
        block, place = self.locate(position)
        return block.owners[place]

    def column(self, name: str, *, lists: bool) -> AttributeColumn:
        """Return the values of an attribute, by its full name, for all devices."""
        key = (name, lists)
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = AttributeColumn(self, name, lists=lists)
        return column


class AttributeColumn:
    """One attribute of all devices of a view, as bits: see :mod:`drachma.allocator.attributes`."""

    __slots__ = ("bits", "numbering", "occurrences", "untyped")

    def __init__(self, view: View, name: str, *, lists: bool) -> None:
        self.numbering = attributes.Numbering()
        self.bits: list[int] = []
        """Elements of the value by position; 0 for a value that cannot be compared."""
        self.untyped = 0
        """Without list attributes: devices that have the attribute, but with a value of no single type."""
        for block in view.blocks:
            driver = block.pool_id.driver
            for device in block.devices:
                value = attributes.elements(attributes.lookup(device.attributes, name, driver=driver), lists=lists)
                self.append(value, lists=lists)
        self.occurrences = occurrences.Occurrences(self.bits)
        """Values of all devices, for the checks of all requests."""

    def arranged(self, order: Sequence[int], arrange: Callable[[int], int]) -> AttributeColumn:
        """Return the column of a view in another order: positions to take, and a conversion of sets."""
        column = copy.copy(self)
        column.bits = [self.bits[position] for position in order]
        column.occurrences = occurrences.Occurrences(column.bits)
        column.untyped = arrange(self.untyped)
        return column

    def append(self, value: attributes.Value, *, lists: bool) -> None:
        """Add the value of the next position."""
        if value is None:
            self.bits.append(0)
        elif isinstance(value, attributes.Untyped):
            # The first device of a constraint may have such a value, and nothing ever matches it.
            self.untyped |= 0 if lists else 1 << len(self.bits)
            self.bits.append(0 if lists else self.numbering.unique())
        else:
            self.bits.append(self.numbering.of(value))
