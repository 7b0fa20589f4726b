"""Rules for NodeResourceSlice, and for the ResourceSlice of 1.30.

A slice without a model that is known here is not refused: its model may be known elsewhere, and who reads it skips it.
"""

from typing import Final

from drachma import errors
from drachma.api.v1alpha2 import resourceslice
from drachma.validation import constraints, fielderror, rendering, rulenotation
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import ROOT, SPEC, Path
from drachma.values import names, semver

_RESERVED: Final = ".k8s.io"
_VALUES: Final = {
    "quantity_value": "quantity",
    "bool_value": "bool",
    "int_value": "int",
    "int_slice": "intSlice",
    "string_value": "string",
    "string_slice": "stringSlice",
    "version_value": "version",
}

_Attribute = resourceslice.Attribute | resourceslice.NamedResourcesAttribute


def check_node_slice(slice_: resourceslice.NodeResourceSlice, context: Context) -> Found:
    """Return the errors of a new slice."""
    return _TYPES["NodeResourceSliceSpec"](slice_.spec, SPEC)


def check_node_slice_update(
    slice_: resourceslice.NodeResourceSlice, old: resourceslice.NodeResourceSlice, context: Context
) -> Errors:
    """Yield the errors of a changed slice, which stays one of the same driver on the same node."""
    yield from check_node_slice(slice_, context)
    yield from _TYPES["Update"](slice_.spec, SPEC, old.spec)


def check_slice(slice_: resourceslice.ResourceSlice, context: Context) -> Found:
    """Return the errors of a new slice in the spelling of 1.30."""
    return _TYPES["ResourceSlice"](slice_)


def check_slice_update(
    slice_: resourceslice.ResourceSlice, old: resourceslice.ResourceSlice, context: Context
) -> Errors:
    """Yield the errors of a changed slice in the spelling of 1.30."""
    yield from check_slice(slice_, context)
    yield from _TYPES["Update"](slice_, ROOT, old)


_caseless_name: Final = constraints.text(names.dns1123_subdomain_caseless)


def _unreserved_name(name: str, at: Path) -> Errors:
    if name.endswith(_RESERVED):
        yield fielderror.forbidden(at, f"names that end in {_RESERVED} are reserved for Kubernetes")


def _version(text: str, at: Path) -> Errors:
    try:
        semver.SemVer.parse_tolerant(text.strip())
    except errors.InvalidValueError:
        yield fielderror.invalid(at, text, "must be a string compatible with semver.org spec 2.0.0")


def _check_value(attribute: _Attribute, at: Path) -> Errors:
    present = [wire_name for name, wire_name in _VALUES.items() if getattr(attribute, name) is not None]
    if not present:
        yield fielderror.required(at, "exactly one value must be set")
    elif len(present) > 1:
        yield fielderror.invalid(at, rendering.wire(sorted(present)), "exactly one field must be set, not several")


_TYPES: Final = rulenotation.load_structs("v1alpha2/resourceslice", globals())
