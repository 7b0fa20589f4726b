"""Device counts: devices of a class that a node sees, and those of them that claims hold.

Scores of extended resources read them. As upstream counts for scores, slices of every generation and of incomplete
pools count, and taints do not.
"""

from __future__ import annotations

from typing import NamedTuple

from drachma import errors
from drachma.allocator import pool, selectors
from drachma.claims import identity
from drachma.scheduler.snapshot import devices


class DeviceCount(NamedTuple):
    """Devices of a class on a node."""

    devices: int = 0
    allocated: int = 0


def count(class_name: str, node: devices.NodeDevices) -> DeviceCount:
    """Return the devices of a class that a node sees. There are none if a selector fails on any of them."""
    source = node.allocator
    entry = source.classes.get(class_name)
    if entry is None:
        return DeviceCount()
    total = allocated = 0
    try:
        _ = node.view  # From now on, changes of the pools that it sees concern the node.
        compiler = selectors.SelectorCompiler(source.features)
        expressions = [compiler.selector(each.cel.expression) for each in entry.spec.selectors if each.cel is not None]
        for record in source.catalog.near(node.info.name):
            driver = record.pool_id.driver
            for number, device in enumerate(record.spec.devices):
                if not _is_near(record, number, node):
                    continue
                if all(selector.matches(device, driver=driver) for selector in expressions):
                    total += 1
                    allocated += source.allocated.is_allocated(identity.DeviceID(*record.pool_id, device.name))
    except (errors.AllocationError, errors.CelError):
        return DeviceCount()
    return DeviceCount(total, allocated)


def _is_near(record: pool.SliceRecord, number: int, node: devices.NodeDevices) -> bool:
    if record.device_placements:
        return record.device_placements[number].covers(node.info.place)
    return record.placement.covers(node.info.place)
