"""Rules for NodeResourceSlice, and for the ResourceSlice of 1.30.

A slice without a model that is known here is not refused: its model may be known elsewhere, and who reads it skips it.
"""

from collections.abc import Sequence
from typing import Final

from drachma import errors
from drachma.api.v1alpha2 import resourceslice
from drachma.validation import fielderror, formats, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path
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

_Resources = Sequence[resourceslice.NamedResource | resourceslice.NamedResourcesInstance]
_Attribute = resourceslice.Attribute | resourceslice.NamedResourcesAttribute


def check_node_slice(slice_: resourceslice.NodeResourceSlice) -> Errors:
    """A new slice."""
    spec = slice_.spec
    if spec.node_name:
        yield from formats.node_name(spec.node_name, SPEC.child("nodeName"))
    else:
        yield fielderror.required(SPEC.child("nodeName"))
    yield from formats.driver_name(spec.driver_name, SPEC.child("driverName"))
    yield from _resources(spec.named_resources_with_attributes or (), SPEC.child("namedResourcesWithAttributes"))


def check_node_slice_update(slice_: resourceslice.NodeResourceSlice, old: resourceslice.NodeResourceSlice) -> Errors:
    """A changed slice: it stays one of the same driver on the same node."""
    yield from check_node_slice(slice_)
    yield from metadata.unchanged(slice_.spec.node_name, old.spec.node_name, SPEC.child("nodeName"))
    yield from metadata.unchanged(slice_.spec.driver_name, old.spec.driver_name, SPEC.child("driverName"))


def check_slice(slice_: resourceslice.ResourceSlice) -> Errors:
    """A new slice in the spelling of 1.30."""
    if slice_.node_name:
        yield from formats.node_name(slice_.node_name, Path("nodeName"))
    yield from formats.driver_name(slice_.driver_name, Path("driverName"))
    if slice_.named_resources is not None:
        yield from _resources(slice_.named_resources.instances, Path("namedResources").child("instances"))


def check_slice_update(slice_: resourceslice.ResourceSlice, old: resourceslice.ResourceSlice) -> Errors:
    """A changed slice in the spelling of 1.30."""
    yield from check_slice(slice_)
    yield from metadata.unchanged(slice_.node_name, old.node_name, Path("nodeName"))
    yield from metadata.unchanged(slice_.driver_name, old.driver_name, Path("driverName"))


def _resources(value: _Resources, at: Path) -> Errors:
    previous: set[str] = set()
    for position, resource in enumerate(value):
        place = at.item(position)
        yield from fielderror.problems(place.child("name"), resource.name, names.dns1123_subdomain(resource.name))
        if resource.name in previous:
            yield fielderror.duplicate(place.child("name"), resource.name)
        previous.add(resource.name)
        yield from _attributes(resource.attributes, place.child("attributes"))


def _attributes(value: Sequence[_Attribute], at: Path) -> Errors:
    previous: set[str] = set()
    for position, attribute in enumerate(value):
        place = at.item(position)
        name = place.child("name")
        # The KEP's own example has names in upper case, although it says otherwise.
        yield from fielderror.problems(name, attribute.name, names.dns1123_subdomain_caseless(attribute.name))
        if attribute.name.endswith(_RESERVED):
            yield fielderror.forbidden(name, f"names that end in {_RESERVED} are reserved for Kubernetes")
        if attribute.name in previous:
            yield fielderror.duplicate(name, attribute.name)
        previous.add(attribute.name)
        yield from _value(attribute, place)


def _value(attribute: _Attribute, at: Path) -> Errors:
    present = [wire_name for name, wire_name in _VALUES.items() if getattr(attribute, name) is not None]
    if attribute.version_value is not None:
        try:
            semver.SemVer.parse_tolerant(attribute.version_value.strip())
        except errors.InvalidValueError:
            detail = "must be a string compatible with semver.org spec 2.0.0"
            yield fielderror.invalid(at.child("version"), attribute.version_value, detail)
    if not present:
        yield fielderror.required(at, "exactly one value must be set")
    elif len(present) > 1:
        yield fielderror.invalid(at, rendering.wire(sorted(present)), "exactly one field must be set, not several")
