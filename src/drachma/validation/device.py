"""Rules for one device of a slice."""

from typing import Final

from drachma.api import gates as feature
from drachma.api import resourceslice
from drachma.validation import (
    attributes,
    binding,
    capacity,
    collection,
    counters,
    fielderror,
    formats,
    limits,
    nodeallocatable,
    nodeselector,
    taints,
)
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path

_ONE_SELECTION: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required "
    "when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)


def check(
    device: resourceslice.Device,
    at: Path,
    *,
    old: resourceslice.Device | None,
    selects_nodes: bool,
    gates: feature.Gates,
) -> Errors:
    """A device; capacities and taints that ``old`` had alike are not looked at again.

    ``selects_nodes`` says that each device of the slice names its nodes itself.
    """
    yield from formats.short_name(device.name, at.child("name"))
    yield from _sizes(device, at)
    yield from collection.check_map(
        device.attributes,
        formats.qualified_name,
        attributes.check,
        at=at.child("attributes"),
        shown_key=limits.ATTRIBUTE_KEY,
    )
    if old is None or old.capacity != device.capacity:
        yield from _capacities(device, at.child("capacity"), gates=gates)
    if old is None or old.taints != device.taints:
        yield from collection.check_list(device.taints, taints.check_taint, at=at.child("taints"), limit=limits.TAINTS)
    yield from collection.check_set(
        device.consumes_counters,
        counters.check_consumption,
        at=at.child("consumesCounters"),
        key=lambda consumption: consumption.counter_set,
        limit=limits.COUNTER_CONSUMPTIONS,
        size_covered=True,
        unique_covered=True,
    )
    if selects_nodes:
        yield from _node_selection(device, at)
    elif device.node_name is not None or device.node_selector is not None or device.all_nodes is not None:
        detail = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set "
            "if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
        )
        yield fielderror.invalid(at, None, detail)
    yield from binding.check(device.binding_conditions, device.binding_failure_conditions, at)
    yield from nodeallocatable.check_device(device, at)


def _sizes(device: resourceslice.Device, at: Path) -> Errors:
    count = len(device.attributes) + len(device.capacity)
    limit = limits.ATTRIBUTES_AND_CAPACITIES
    if count > limit:
        yield fielderror.invalid(at, count, f"the total number of attributes and capacities must not exceed {limit}")
    count = attributes.count_values(device.attributes)
    limit = limits.ATTRIBUTE_VALUES
    if count > limit:
        yield fielderror.invalid(at, count, f"the total number of attribute values must not exceed {limit}")


def _capacities(device: resourceslice.Device, at: Path, *, gates: feature.Gates) -> Errors:
    def check_capacity(entry: resourceslice.DeviceCapacity, path: Path) -> Errors:
        if device.allow_multiple_allocations:
            return capacity.check_shared(entry, path, gates=gates)
        return capacity.check_exclusive(entry, path)

    yield from collection.check_map(
        device.capacity, formats.qualified_name, check_capacity, at=at, shown_key=limits.ATTRIBUTE_KEY
    )


def _node_selection(device: resourceslice.Device, at: Path) -> Errors:
    chosen = []
    if device.node_name:
        chosen.append("`nodeName`")
        yield from formats.node_name(device.node_name, at.child("nodeName"))
    elif device.node_name is not None:
        yield fielderror.invalid(at.child("nodeName"), "", "must not be empty")
    if device.node_selector is not None:
        chosen.append("`nodeSelector`")
        yield from nodeselector.check(device.node_selector, at.child("nodeSelector"))
    if device.all_nodes:
        chosen.append("`allNodes`")
    elif device.all_nodes is not None:
        detail = "must be either unset or set to true"
        yield fielderror.invalid(at.child("allNodes"), value=False, detail=detail)
    if not chosen:
        yield fielderror.required(at, _ONE_SELECTION)
    elif len(chosen) > 1:
        yield fielderror.invalid(at, f"{{{', '.join(chosen)}}}", _ONE_SELECTION)
