"""Rules for ResourceSlice."""

from typing import Final

from drachma.api import gates as feature
from drachma.api import resourceslice, struct
from drachma.validation import (
    attributes,
    collection,
    device,
    fielderror,
    formats,
    limits,
    metadata,
    nodeselector,
    rendering,
)
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path

_ONE_SELECTION: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_UNSET_OR_TRUE: Final = "must be either unset or set to true"


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
    yield from formats.driver_name(spec.driver, SPEC.child("driver"))
    yield from _pool(spec.pool, SPEC.child("pool"))
    if old is not None:
        yield from metadata.unchanged(spec.pool.name, old.pool.name, SPEC.child("pool", "name"))
        yield from metadata.unchanged(spec.driver, old.driver, SPEC.child("driver"))
        yield from metadata.unchanged(_pointer(spec.node_name), _pointer(old.node_name), SPEC.child("nodeName"))
    yield from _node_selection(spec)
    if not struct.is_absent(spec.shared_counters) and not struct.is_absent(spec.devices):
        yield fielderror.invalid(SPEC, "", "only one of `sharedCounters` or `devices` is allowed")
    yield from _devices(spec, old=old, gates=gates)
    yield from collection.check_set(
        spec.shared_counters,
        device.check_counter_set,
        at=SPEC.child("sharedCounters"),
        key=lambda counter_set: counter_set.name,
        limit=limits.COUNTER_SETS,
        size_covered=True,
        unique_covered=True,
    )
    yield from attributes.check_partition_type(spec, SPEC)
    yield from device.check_skipped_operations(spec.skip_node_operations, SPEC.child("skipNodeOperations"))


def _pool(pool: resourceslice.ResourcePool, at: Path) -> Errors:
    yield from formats.pool_name(pool.name, at.child("name"))
    if pool.resource_slice_count <= 0:
        count = pool.resource_slice_count
        yield fielderror.invalid(at.child("resourceSliceCount"), count, "must be greater than zero")
    if pool.generation < 0:
        detail = "must be greater than or equal to zero"
        yield fielderror.invalid(at.child("generation"), pool.generation, detail)


def _node_selection(spec: resourceslice.ResourceSliceSpec) -> Errors:
    members = []
    if spec.node_name:
        members.append("`nodeName`")
        yield from formats.node_name(spec.node_name, SPEC.child("nodeName"))
    elif spec.node_name is not None:
        detail = "must be either unset or set to a non-empty string"
        yield fielderror.invalid(SPEC.child("nodeName"), "", detail)
    if spec.node_selector is not None:
        members.append("`nodeSelector`")
        at = SPEC.child("nodeSelector")
        yield from nodeselector.check(spec.node_selector, at)
        terms = spec.node_selector.node_selector_terms
        if len(terms) != 1:
            # One term each keeps selectors of several slices easy to combine.
            display = rendering.NULL if struct.is_absent(terms) else rendering.internal(terms)
            yield fielderror.invalid(at.child("nodeSelectorTerms"), display, "must have exactly one node selector term")
    for name, value in (("allNodes", spec.all_nodes), ("perDeviceNodeSelection", spec.per_device_node_selection)):
        if value:
            members.append(f"`{name}`")
        elif value is not None:
            yield fielderror.invalid(SPEC.child(name), value=False, detail=_UNSET_OR_TRUE)
    if not members:
        yield fielderror.required(SPEC, _ONE_SELECTION)
    elif len(members) > 1:
        shown_names = f"{{{', '.join(members)}}}"
        yield fielderror.invalid(SPEC, shown_names, f"{_ONE_SELECTION}, but multiple fields are set")


def _devices(
    spec: resourceslice.ResourceSliceSpec, *, old: resourceslice.ResourceSliceSpec | None, gates: feature.Gates
) -> Errors:
    old_devices: dict[str, resourceslice.Device] = {}
    for entry in old.devices if old is not None else ():
        old_devices.setdefault(entry.name, entry)
    is_advanced = any(
        entry.taints or entry.consumes_counters or attributes.has_list(entry.attributes) for entry in spec.devices
    )
    yield from collection.check_set(
        spec.devices,
        lambda entry, path: device.check(
            entry,
            path,
            old=old_devices.get(entry.name),
            selects_nodes=bool(spec.per_device_node_selection),
            gates=gates,
        ),
        at=SPEC.child("devices"),
        key=lambda entry: entry.name,
        limit=limits.SLICE_DEVICES_WITH_ADVANCED_FEATURES if is_advanced else limits.SLICE_DEVICES,
    )


def _pointer(text: str | None) -> rendering.Rendered:
    return rendering.NULL if text is None else rendering.named(text)
