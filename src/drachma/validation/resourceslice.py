"""Rules for ResourceSlice."""

from typing import Final

from drachma.api import gates as feature
from drachma.api import nodeselector, resourceslice, struct
from drachma.validation import (
    attributes,
    collection,
    device,
    fielderror,
    limits,
    metadata,
    rendering,
    rulenotation,
)
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path

_ONE_SELECTION: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


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
    yield from _TYPES["ResourceSliceSpec"](spec, SPEC, old)
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


def _check_unchanged(
    spec: resourceslice.ResourceSliceSpec, at: Path, old: resourceslice.ResourceSliceSpec | None
) -> Errors:
    if old is not None:
        yield from metadata.unchanged(spec.pool.name, old.pool.name, at.child("pool", "name"))
        yield from metadata.unchanged(spec.driver, old.driver, at.child("driver"))
        yield from metadata.unchanged(_pointer(spec.node_name), _pointer(old.node_name), at.child("nodeName"))


def _one_term(selector: nodeselector.NodeSelector, at: Path) -> Errors:
    """Check that there is one term, which keeps selectors of several slices easy to combine."""
    terms = selector.node_selector_terms
    if len(terms) != 1:
        display = rendering.NULL if struct.is_absent(terms) else rendering.internal(terms)
        yield fielderror.invalid(at.child("nodeSelectorTerms"), display, "must have exactly one node selector term")


def _check_one_selection(spec: resourceslice.ResourceSliceSpec, at: Path) -> Errors:
    selection = {
        "nodeName": spec.node_name,
        "nodeSelector": spec.node_selector is not None,
        "allNodes": spec.all_nodes,
        "perDeviceNodeSelection": spec.per_device_node_selection,
    }
    several = ", but multiple fields are set"
    return device.check_one_selection(selection, at, detail=_ONE_SELECTION, several=several)


def _has_counters_and_devices(spec: resourceslice.ResourceSliceSpec) -> bool:
    return not struct.is_absent(spec.shared_counters) and not struct.is_absent(spec.devices)


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


_TYPES: Final = rulenotation.load_structs("resourceslice", globals())
