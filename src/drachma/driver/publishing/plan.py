"""The writes that turn the existing slices of a pool into the desired ones. Pure.

The highest generation that is there is the current one. A slice belongs to the position that its name begins with;
what is older, has another name, is there twice or is beyond the end goes. Readers never see a mixture: as soon as
more than one slice has to change, all of them are written with the next generation, and a pool of which not all
slices are there counts as incomplete. Reordering devices is a change, since the allocator tries them in order.
"""

import datetime as dt
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import structs

from drachma.api import devices, meta, resourceslice
from drachma.api.struct import ABSENT_TUPLE
from drachma.driver.publishing.layout import Layout, Owner, SliceContent

_SHORTEST_INDEX: Final = 5
_HEXADECIMAL: Final = re.compile(r"[0-9a-fA-F]+")
_A_SECOND: Final = dt.timedelta(seconds=1)


class Write(NamedTuple):
    """A slice as it is to be stored at a position of its pool."""

    position: int
    slice: resourceslice.ResourceSlice


class Plan(NamedTuple):
    """Writes in their order. Slices to delete are named with the version that was compared."""

    removals: tuple[resourceslice.ResourceSlice, ...] = ()
    updates: tuple[Write, ...] = ()
    creations: tuple[Write, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.removals or self.updates or self.creations)


class Identity(NamedTuple):
    """Owner of slices; ``sets_node`` says that they belong to the node that owns them."""

    driver: str
    owner: Owner | None = None
    sets_node: bool = True

    @property
    def node_name(self) -> str | None:
        return self.owner.name if self.owner is not None and self.owner.is_node and self.sets_node else None


def plan(
    identity: Identity,
    name: str,
    *,
    layout: Layout | None,
    present: Sequence[resourceslice.ResourceSlice],
    completes: bool = False,
) -> Plan:
    """Return the writes for a pool; without a layout, there shall be none.

    With ``completes``, slices that are missing among others that are right are made without a new generation. That is
    for when making them was refused before: the others need not be written again for every attempt.
    """
    ordered = sorted(present, key=lambda each: each.metadata.name)
    if layout is None:
        return Plan(removals=tuple(ordered))
    generation = max((each.spec.pool.generation for each in ordered), default=0)
    current, removals = _classified(ordered, generation=generation, count=len(layout.slices))
    pool = resourceslice.ResourcePool(name=name, generation=generation, resource_slice_count=len(layout.slices))
    changed = {
        index
        for index, each in current.items()
        if not _says(each.spec, pool=pool, layout=layout, content=layout.slices[index])
    }
    is_complete = len(current) == len(layout.slices)
    if layout.generation > generation:
        generation, rewrites = layout.generation, True
    elif (is_complete and len(changed) <= 1) or (completes and current and not changed):
        rewrites = False
    else:
        generation, rewrites = generation + 1, True
    pool = structs.replace(pool, generation=generation)
    updates = [
        Write(index, _updated(each, pool=pool, layout=layout, content=layout.slices[index]))
        for index, each in sorted(current.items())
        if rewrites or index in changed
    ]
    creations = [
        Write(index, _created(identity, index, pool=pool, layout=layout))
        for index in range(len(layout.slices))
        if index not in current
    ]
    return Plan(removals=tuple(removals), updates=tuple(updates), creations=tuple(creations))


def _classified(
    present: Sequence[resourceslice.ResourceSlice], *, generation: int, count: int
) -> tuple[dict[int, resourceslice.ResourceSlice], list[resourceslice.ResourceSlice]]:
    """Return the slices by their positions, and those that have none."""
    current: dict[int, resourceslice.ResourceSlice] = {}
    obsolete = []
    for each in present:
        index = _index(each.metadata.name, length=_index_length(count))
        if each.spec.pool.generation < generation or index is None or index >= count or index in current:
            obsolete.append(each)
        else:
            current[index] = each
    return current, obsolete


# Names


def _index_length(count: int) -> int:
    """Return the number of digits positions have in names: the same for all slices of a pool, so that they sort."""
    return max(_SHORTEST_INDEX, len(f"{count - 1:x}"))


def _index(name: str, *, length: int) -> int | None:
    """Return the position that the name of a slice begins with, or None where it begins otherwise."""
    digits, separator, _ = name.partition("-")
    if not separator or len(digits) != length or _HEXADECIMAL.fullmatch(digits) is None:
        return None
    return int(digits, 16)


def _generate_name(identity: Identity, index: int, *, count: int) -> str:
    parts = [f"{index:0{_index_length(count)}x}", identity.driver]
    if identity.owner is not None:
        parts.append(identity.owner.name)
    return "".join(f"{part}-" for part in parts)


# Slices


def _created(
    identity: Identity, index: int, *, pool: resourceslice.ResourcePool, layout: Layout
) -> resourceslice.ResourceSlice:
    metadata = meta.ObjectMeta(generate_name=_generate_name(identity, index, count=len(layout.slices)))
    if (owner := identity.owner) is not None:
        reference = meta.OwnerReference(
            api_version=owner.api_version, kind=owner.kind, name=owner.name, uid=owner.uid, controller=True
        )
        metadata = structs.replace(metadata, owner_references=(reference,))
    spec = resourceslice.ResourceSliceSpec(driver=identity.driver, node_name=identity.node_name)
    return resourceslice.ResourceSlice(
        metadata=metadata, spec=_filled(spec, pool=pool, layout=layout, content=layout.slices[index])
    )


def _updated(
    current: resourceslice.ResourceSlice,
    *,
    pool: resourceslice.ResourcePool,
    layout: Layout,
    content: SliceContent,
) -> resourceslice.ResourceSlice:
    desired = structs.replace(content, devices=keep_taint_times(content.devices, current.spec.devices))
    return structs.replace(current, spec=_filled(current.spec, pool=pool, layout=layout, content=desired))


def _filled(
    spec: resourceslice.ResourceSliceSpec,
    *,
    pool: resourceslice.ResourcePool,
    layout: Layout,
    content: SliceContent,
) -> resourceslice.ResourceSliceSpec:
    return structs.replace(
        spec,
        pool=pool,
        node_selector=layout.node_selector,
        all_nodes=layout.all_nodes or None,
        # A list without anything is one that is absent.
        devices=content.devices or ABSENT_TUPLE,
        shared_counters=content.shared_counters or ABSENT_TUPLE,
        per_device_node_selection=content.per_device_node_selection,
        partition_type_attribute=content.partition_type_attribute,
        skip_node_operations=content.skip_node_operations or ABSENT_TUPLE,
    )


# What is equal


def _says(
    spec: resourceslice.ResourceSliceSpec,
    *,
    pool: resourceslice.ResourcePool,
    layout: Layout,
    content: SliceContent,
) -> bool:
    """Return True if a slice says already what it shall."""
    return (
        spec.pool == pool
        and spec.node_selector == layout.node_selector
        and bool(spec.all_nodes) == layout.all_nodes
        and _are_alike(spec.devices, content.devices)
        and spec.shared_counters == content.shared_counters
        and spec.per_device_node_selection == content.per_device_node_selection
        and spec.partition_type_attribute == content.partition_type_attribute
        and spec.skip_node_operations == content.skip_node_operations
    )


def _are_alike(desired_devices: Sequence[resourceslice.Device], actual_devices: Sequence[resourceslice.Device]) -> bool:
    """Return True if devices are equal, but for times of taints that one side does not know, or rounds differently."""
    if len(desired_devices) != len(actual_devices):
        return False
    return all(
        desired == actual
        or (
            len(desired.taints) == len(actual.taints)
            and all(map(_are_alike_taints, desired.taints, actual.taints))
            and structs.replace(desired, taints=actual.taints) == actual
        )
        for desired, actual in zip(desired_devices, actual_devices, strict=True)
    )


def _are_alike_taints(desired: devices.DeviceTaint, actual: devices.DeviceTaint) -> bool:
    if _mark(desired) != _mark(actual):
        return False
    begun, other_begun = desired.time_added, actual.time_added
    return begun is None or other_begun is None or abs(begun - other_begun) <= _A_SECOND


def _mark(taint: devices.DeviceTaint) -> tuple[str, str, str]:
    return taint.key, taint.value, taint.effect


def keep_taint_times(
    desired_devices: Sequence[resourceslice.Device], stored_devices: Sequence[resourceslice.Device]
) -> tuple[resourceslice.Device, ...]:
    """Devices with the times that their taints have already, where the driver says none."""
    times = {
        device.name: {_mark(taint): taint.time_added for taint in reversed(device.taints)}
        for device in reversed(stored_devices)
        if device.taints
    }
    return tuple(
        structs.replace(
            device,
            taints=tuple(
                taint
                if taint.time_added is not None
                else structs.replace(taint, time_added=times[device.name].get(_mark(taint)))
                for taint in device.taints
            ),
        )
        if device.taints and device.name in times
        else device
        for device in desired_devices
    )
