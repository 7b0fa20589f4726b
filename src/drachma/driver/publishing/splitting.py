"""From pools to slices: as many as the limits of slices ask for, and nothing invalid. Pure.

Counter sets come first, in slices of their own. The devices of a pool are cut into equal lengths, so that a change of
one device is a change of one slice; the length depends on what any of them has, since slices with taints, counters or
lists of values may hold half as many.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from msgspec import structs

from drachma import errors
from drachma.api import codec, meta, resourceslice
from drachma.driver.pool import Pool
from drachma.driver.publishing import plan, poolrules
from drachma.driver.publishing.layout import Layout, SliceContent
from drachma.validation import attributes, context, fielderror, limits, writes

LARGEST_BYTES: Final = 1_000_000
"""As much as a slice may measure: API servers take half as much again, with all that they add themselves."""

_DEVICE: Final = re.compile(r"^spec\.devices\[(\d+)\]")
_PartT = TypeVar("_PartT")


def layouts(identity: plan.Identity, pools: Iterable[Pool], *, now: datetime) -> dict[str, Layout]:
    """Return the layouts of pools by name.

    Raises:
        errors.DriverError: an API server would refuse a slice, or a pool would be unusable; it names the device and
            field, and why.
    """
    by_name: dict[str, Layout] = {}
    for pool in pools:
        if pool.name in by_name:
            raise errors.DriverError(f"pool {pool.name!r}: is there twice")
        by_name[pool.name] = _layout(pool)
    for name, layout in by_name.items():
        _check(identity, name, layout=layout, now=now)
    poolrules.check(by_name)
    return by_name


def _layout(pool: Pool) -> Layout:
    selects_nodes = any(each.node_name or each.node_selector or each.all_nodes for each in pool.devices)
    placement: dict[str, Any] = {
        "per_device_node_selection": selects_nodes or None,
        "skip_node_operations": pool.skip_node_operations,
    }
    slices = [
        SliceContent(shared_counters=sets, **placement) for sets in _lengths(pool.counter_sets, limits.COUNTER_SETS)
    ]
    length = (
        limits.SLICE_DEVICES_WITH_ADVANCED_FEATURES if any(map(_is_advanced, pool.devices)) else limits.SLICE_DEVICES
    )
    for devices in _lengths(pool.devices, length):
        slices += [SliceContent(devices=part, **placement) for part in _sizes(devices)]
    if not slices:
        # A driver that works and has no devices is something else than none.
        slices = [SliceContent(**placement)]
    return Layout(slices=tuple(slices), node_selector=pool.node_selector, all_nodes=pool.all_nodes)


def _is_advanced(device: resourceslice.Device) -> bool:
    return bool(device.taints or device.consumes_counters or attributes.has_list(device.attributes))


def _lengths(parts: Sequence[_PartT], length: int) -> Iterator[tuple[_PartT, ...]]:
    for begin in range(0, len(parts), length):
        yield tuple(parts[begin : begin + length])


def _sizes(devices: tuple[resourceslice.Device, ...]) -> Iterator[tuple[resourceslice.Device, ...]]:
    """Return the devices in as few parts as the size limit allows."""
    part: list[resourceslice.Device] = []
    size = 0
    for device in devices:
        device_size = len(codec.encode_part(device))
        if part and size + device_size > LARGEST_BYTES:
            yield tuple(part)
            part, size = [], 0
        part.append(device)
        size += device_size
    yield tuple(part)


def _check(identity: plan.Identity, name: str, *, layout: Layout, now: datetime) -> None:
    todo = plan.plan(identity, name, layout=layout, present=())
    circumstances = context.Context(now=now)
    for write in todo.creations:
        # Servers make names of their own; this one only has to be one.
        checked_slice = structs.replace(write.slice, metadata=meta.ObjectMeta(name="slice"))
        verdict = writes.create(checked_slice, circumstances)
        if verdict.errors:
            messages = "; ".join(_shown(error, layout.slices[write.position]) for error in verdict.errors)
            raise errors.DriverError(f"pool {name!r}, slice #{write.position}: {messages}")


def _shown(error: fielderror.FieldError, content: SliceContent) -> str:
    text = f"{error.field}: {error.body}"
    match = _DEVICE.match(text)
    return f"device {content.devices[int(match[1])].name!r}: {text}" if match else text
