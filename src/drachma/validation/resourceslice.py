"""Rules for ResourceSlice and its devices, with their counters, binding conditions and skipped operations."""

from collections.abc import Mapping
from typing import Final

import msgspec

from drachma.api import gates as feature
from drachma.api import nodeselector, resourceclaim, resourceslice, struct
from drachma.validation import (
    attributes,
    capacity,
    collection,
    fielderror,
    formats,
    limits,
    metadata,
    rendering,
    rulecompiler,
    rulenotation,
)
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import SPEC, Path
from drachma.values import names

_Binding = resourceslice.Device | resourceclaim.DeviceRequestAllocationResult


def check_skipped_operations(skipped: tuple[str, ...], at: Path) -> Found:
    """Return an error if prepare is skipped and unprepare is not."""
    if "NodePrepareResources" not in skipped or {"NodeUnprepareResources", "*"}.intersection(skipped):
        return ()
    detail = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
    return [fielderror.invalid(at, rendering.wire(skipped), detail)]


def _check_failure_conditions(device: _Binding, at: Path) -> Errors:
    """Check the conditions of a failed binding, which are others than those of a successful one."""
    conditions, failures = device.binding_conditions, device.binding_failure_conditions
    conditions_at, failures_at = at.child("bindingConditions"), at.child("bindingFailureConditions")
    for position, name in collection.repetitions(conditions):
        yield fielderror.duplicate(conditions_at.item(position), name)
    for position, failure in enumerate(failures):
        if failure in failures[:position]:
            yield fielderror.duplicate(failures_at.item(position), failure)
        if failure in conditions:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            yield fielderror.invalid(failures_at.item(position), failure, detail)


def _show_names(names: tuple[str, ...]) -> rendering.Rendered:
    return rendering.NULL if struct.is_absent(names) else rendering.wire(names)


class Facts(msgspec.Struct, frozen=True):
    """Facts about the slice of a device: whether each device selects its nodes, and the devices of the old slice."""

    gates: feature.Gates
    selects_nodes: bool
    old_devices: Mapping[str, resourceslice.Device]


def _check_attributes(device: resourceslice.Device, at: Path) -> Errors:
    return collection.check_map(
        device.attributes,
        formats.qualified_name,
        attributes.check,
        at=at.child("attributes"),
        shown_key=limits.ATTRIBUTE_KEY,
    )


def _has_new_taints(device: resourceslice.Device, facts: Facts) -> bool:
    old = facts.old_devices.get(device.name)
    return old is None or old.taints != device.taints


def _check_sizes(device: resourceslice.Device, at: Path) -> Errors:
    count = len(device.attributes) + len(device.capacity)
    limit = limits.ATTRIBUTES_AND_CAPACITIES
    if count > limit:
        yield fielderror.invalid(at, count, f"the total number of attributes and capacities must not exceed {limit}")
    count = attributes.count_values(device.attributes)
    limit = limits.ATTRIBUTE_VALUES
    if count > limit:
        yield fielderror.invalid(at, count, f"the total number of attribute values must not exceed {limit}")


def _check_capacities(device: resourceslice.Device, at: Path, facts: Facts) -> Errors:
    def check_capacity(entry: resourceslice.DeviceCapacity, path: Path) -> Errors:
        if device.allow_multiple_allocations:
            return capacity.check_shared(entry, path, gates=facts.gates)
        return capacity.check_exclusive(entry, path)

    old = facts.old_devices.get(device.name)
    if old is None or old.capacity != device.capacity:
        yield from collection.check_map(
            device.capacity,
            formats.qualified_name,
            check_capacity,
            at=at.child("capacity"),
            shown_key=limits.ATTRIBUTE_KEY,
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


def one_selection(*names: str, detail: str, several: str = "") -> rulecompiler.Rule:
    """Return the rule that nodes are selected by exactly one field; ``several`` is added to the detail for more."""
    attributes = {rulecompiler.snake_case(name): name for name in names}

    def rule(value: struct.Struct, at: Path) -> Errors:
        members = [f"`{name}`" for attribute, name in attributes.items() if getattr(value, attribute)]
        if not members:
            yield fielderror.required(at, detail)
        elif len(members) > 1:
            yield fielderror.invalid(at, f"{{{', '.join(members)}}}", f"{detail}{several}")

    return rule


_check_one_device_selection: Final = one_selection(
    "nodeName",
    "nodeSelector",
    "allNodes",
    detail="exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required "
    "when `perDeviceNodeSelection` is set to true in the ResourceSlice spec",
)


def check(slice_: resourceslice.ResourceSlice, context: Context) -> Errors:
    """Yield the errors of a new slice."""
    yield from _spec(slice_.spec, old=None, gates=context.gates)


def check_update(slice_: resourceslice.ResourceSlice, old: resourceslice.ResourceSlice, context: Context) -> Errors:
    """Yield the errors of a changed slice; pool, driver and node cannot change."""
    yield from metadata.check_finalizer_names(slice_.metadata)
    yield from _spec(slice_.spec, old=old.spec, gates=context.gates)


def _spec(
    spec: resourceslice.ResourceSliceSpec, *, old: resourceslice.ResourceSliceSpec | None, gates: feature.Gates
) -> Errors:
    yield from TYPES["ResourceSliceSpec"](spec, SPEC, old)
    old_devices = {entry.name: entry for entry in reversed(old.devices)} if old is not None else {}
    facts = Facts(gates, bool(spec.per_device_node_selection), old_devices)
    yield from TYPES["ResourceSliceContents"](spec, SPEC, facts)


def _one_term(selector: nodeselector.NodeSelector, at: Path) -> Errors:
    """Check that there is one term, which keeps selectors of several slices easy to combine."""
    terms = selector.node_selector_terms
    if len(terms) != 1:
        display = rendering.NULL if struct.is_absent(terms) else rendering.internal(terms)
        yield fielderror.invalid(at.child("nodeSelectorTerms"), display, "must have exactly one node selector term")


def _has_counters_and_devices(spec: resourceslice.ResourceSliceSpec) -> bool:
    return not struct.is_absent(spec.shared_counters) and not struct.is_absent(spec.devices)


def _is_advanced(spec: resourceslice.ResourceSliceSpec) -> bool:
    return any(
        entry.taints or entry.consumes_counters or attributes.has_list(entry.attributes) for entry in spec.devices
    )


def _pointer(text: str | None) -> rendering.Rendered:
    return rendering.NULL if text is None else rendering.named(text)


_check_one_selection: Final = one_selection(
    "nodeName",
    "nodeSelector",
    "allNodes",
    "perDeviceNodeSelection",
    detail="exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
    several=", but multiple fields are set",
)
TYPES: Final = rulenotation.load_structs("resourceslice", globals())
