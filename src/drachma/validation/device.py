"""Rules for one device of a slice, with its counters, binding conditions and skipped operations."""

from collections.abc import Mapping
from typing import Final

from drachma.api import gates as feature
from drachma.api import resourceslice, struct
from drachma.validation import (
    attributes,
    capacity,
    collection,
    fielderror,
    formats,
    limits,
    nodeallocatable,
    rendering,
    rulenotation,
    taints,
)
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import Path
from drachma.values import names


def check_skipped_operations(skipped: tuple[str, ...], at: Path) -> Found:
    """Return an error if prepare is skipped and unprepare is not."""
    if "NodePrepareResources" not in skipped or {"NodeUnprepareResources", "*"}.intersection(skipped):
        return ()
    detail = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
    return [fielderror.invalid(at, rendering.wire(skipped), detail)]


def check_binding(conditions: tuple[str, ...], failures: tuple[str, ...], at: Path) -> Found:
    """``bindingConditions`` and ``bindingFailureConditions`` below ``at``."""
    return list(_check_binding_conditions(conditions, failures, at)) if conditions or failures else ()


def _check_binding_conditions(conditions: tuple[str, ...], failures: tuple[str, ...], at: Path) -> Errors:
    conditions_at, failures_at = at.child("bindingConditions"), at.child("bindingFailureConditions")
    for types, path in ((conditions, conditions_at), (failures, failures_at)):
        limit = limits.BINDING_CONDITIONS
        yield from collection.check_list(types, formats.label_key, at=path, limit=limit, size_covered=True)
    for position, name in collection.repetitions(conditions):
        yield fielderror.duplicate(conditions_at.item(position), name)
    for position, failure in enumerate(failures):
        if failure in failures[:position]:
            yield fielderror.duplicate(failures_at.item(position), failure)
        if failure in conditions:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            yield fielderror.invalid(failures_at.item(position), failure, detail)
    if failures and not conditions:
        detail = "bindingConditions are required to use bindingFailureConditions"
        yield fielderror.invalid(conditions_at, _shown(conditions), detail)
    if conditions and not failures:
        detail = "bindingFailureConditions are required to use bindingConditions"
        yield fielderror.invalid(failures_at, _shown(failures), detail)


def _shown(names: tuple[str, ...]) -> rendering.Rendered:
    return rendering.NULL if struct.is_absent(names) else rendering.wire(names)


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
        _TYPES["DeviceCounterConsumption"],
        at=at.child("consumesCounters"),
        key=lambda consumption: consumption.counter_set,
        limit=limits.COUNTER_CONSUMPTIONS,
        size_covered=True,
        unique_covered=True,
    )
    if selects_nodes:
        yield from _TYPES["NodeSelectingDevice"](device, at)
    elif device.node_name is not None or device.node_selector is not None or device.all_nodes is not None:
        detail = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set "
            "if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
        )
        yield fielderror.invalid(at, None, detail)
    yield from check_binding(device.binding_conditions, device.binding_failure_conditions, at)
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


def _counter_names(counters: Mapping[str, resourceslice.Counter], at: Path) -> Errors:
    return collection.check_map(
        counters,
        lambda key, path: fielderror.covered(formats.short_name(key, path)),
        lambda _counter, _path: iter(()),
        at=at,
        limit=limits.COUNTERS,
        shown_key=names.LABEL_LENGTH,
    )


def _check_one_selection(device: resourceslice.Device, at: Path) -> Errors:
    selection = {
        "nodeName": device.node_name,
        "nodeSelector": device.node_selector is not None,
        "allNodes": device.all_nodes,
    }
    return check_one_selection(selection, at, detail=_ONE_SELECTION)


def check_one_selection(selection: Mapping[str, object], at: Path, *, detail: str, several: str = "") -> Errors:
    """Yield an error unless nodes are selected in exactly one way; ``several`` is added if there are more."""
    members = [f"`{name}`" for name, value in selection.items() if value]
    if not members:
        yield fielderror.required(at, detail)
    elif len(members) > 1:
        yield fielderror.invalid(at, f"{{{', '.join(members)}}}", f"{detail}{several}")


_TYPES: Final = rulenotation.load_structs("device", globals())
check_counter_set: Final = _TYPES["CounterSet"]
"""Returns the errors of a named set of counters."""
