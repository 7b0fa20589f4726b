"""Pools as they are divided into slices: what a driver wants to be published."""

import datetime as dt
from typing import Final

from msgspec import structs

from drachma.api import devices, nodeselector, resourceslice
from drachma.api.struct import ABSENT_TUPLE, Struct

_HALF_A_SECOND: Final = dt.timedelta(milliseconds=500)


class SliceContent(Struct, frozen=True, kw_only=True):
    """Content of one slice of a pool, without its pool and its nodes."""

    devices: tuple[resourceslice.Device, ...] = ABSENT_TUPLE
    shared_counters: tuple[resourceslice.CounterSet, ...] = ABSENT_TUPLE
    per_device_node_selection: bool | None = None
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ABSENT_TUPLE


class Layout(Struct, frozen=True, kw_only=True):
    """A pool: its slices in the order in which the allocator tries them, and where its devices can be used.

    Without a selector and ``all_nodes`` they belong to the node that the publisher is for. ``generation`` is the least
    that the pool shall have; it is counted up by itself.
    """

    slices: tuple[SliceContent, ...] = ()
    node_selector: nodeselector.NodeSelector | None = None
    all_nodes: bool = False
    generation: int = 0


class Owner(Struct, frozen=True, kw_only=True):
    """Owner of slices for garbage collection: a node, whose uid may be looked up later, or another object."""

    api_version: str = "v1"
    kind: str = "Node"
    name: str
    uid: str = ""

    @property
    def is_node(self) -> bool:
        return (self.api_version, self.kind) == ("v1", "Node")


def round_taint_times(layout: Layout) -> Layout:
    """Round the times of taints to seconds, as they are stored. Otherwise they would differ for ever."""
    return structs.replace(layout, slices=tuple(map(_rounded_slice, layout.slices)))


def _rounded_slice(content: SliceContent) -> SliceContent:
    if not any(taint.time_added for device in content.devices for taint in device.taints):
        return content
    rounded = tuple(
        structs.replace(device, taints=tuple(map(_rounded, device.taints))) if device.taints else device
        for device in content.devices
    )
    return structs.replace(content, devices=rounded)


def _rounded(taint: devices.DeviceTaint) -> devices.DeviceTaint:
    if taint.time_added is None:
        return taint
    return structs.replace(taint, time_added=(taint.time_added + _HALF_A_SECOND).replace(microsecond=0))
