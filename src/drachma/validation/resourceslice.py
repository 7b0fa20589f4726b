"""Rules for ResourceSlice."""

from typing import Final

from drachma.api import gates as feature
from drachma.api import nodeselector, resourceslice, struct
from drachma.validation import (
    attributes,
    device,
    fielderror,
    metadata,
    rendering,
    rulenotation,
)
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path


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
    old_devices = {entry.name: entry for entry in reversed(old.devices)} if old is not None else {}
    facts = device.Facts(gates, bool(spec.per_device_node_selection), old_devices)
    yield from _TYPES["ResourceSliceContents"](spec, SPEC, facts)


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


_check_one_selection: Final = device.one_selection(
    "nodeName",
    "nodeSelector",
    "allNodes",
    "perDeviceNodeSelection",
    detail="exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
    several=", but multiple fields are set",
)
_TYPES: Final = rulenotation.load_structs("resourceslice", globals())
