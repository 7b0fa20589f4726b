"""Rules for device attributes, and for the one attribute that names a device's partition type."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from drachma.api import resourceslice
from drachma.validation import fielderror, formats, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path

_FIELDS: Final = resourceslice.DeviceAttribute.__struct_fields__
_DEFAULTS: Final = resourceslice.DeviceAttribute.__struct_defaults__
_LISTS: Final = {"bool_values": "bools", "int_values": "ints", "string_values": "strings", "version_values": "versions"}
_TEXT_RULES: Final = {
    "string_value": ("string", formats.attribute_text),
    "version_value": ("version", formats.attribute_version),
}
_LIST_RULES: Final = {"string_values": formats.attribute_text, "version_values": formats.attribute_version}


def check(attribute: resourceslice.DeviceAttribute, at: Path) -> Errors:
    """Yield the errors of an attribute, which has exactly one kind of value."""
    members = _written(attribute)
    for name, (wire_name, rule) in _TEXT_RULES.items():
        if name in members:
            yield from rule(members[name], at.child(wire_name))
    for name in (name for name in _LISTS if name in members):
        below = at.child(_LISTS[name])
        if not members[name]:
            yield fielderror.invalid(below, rendering.wire(()), "must not be empty if specified")
        for position, value in enumerate(members[name] if name in _LIST_RULES else ()):
            yield from _LIST_RULES[name](value, below.item(position))
    if len(members) != 1:
        display = rendering.internal(attribute) if members else ""
        error = fielderror.invalid(at, display, "exactly one value must be specified", origin="union")
        yield from fielderror.covered([error])


def count_values(attributes: Mapping[str, resourceslice.DeviceAttribute]) -> int:
    """Return the number of values of a device's attributes; each item of a list counts."""
    return sum(
        sum(len(value) for name, value in _written(attribute).items() if name in _LISTS) or 1
        for attribute in attributes.values()
    )


def has_list(attributes: Mapping[str, resourceslice.DeviceAttribute]) -> bool:
    """Return True if any attribute is a list, even an empty one."""
    return any(name in _LISTS for attribute in attributes.values() for name in _written(attribute))


def _written(attribute: resourceslice.DeviceAttribute) -> dict[str, Any]:
    """Return the members that are set; an absent member holds its default object."""
    values = zip(_FIELDS, structs.astuple(attribute), _DEFAULTS, strict=True)
    return {name: value for name, value, default in values if value is not default}


def check_partition_type(spec: resourceslice.ResourceSliceSpec, at: Path) -> Errors:
    """Yield errors unless every device that consumes counters has the partition type attribute, as a string."""
    name = spec.partition_type_attribute
    if name is None:
        return
    if not any(device.consumes_counters for device in spec.devices):
        detail = "may only be set on a slice which declares devices that consume counters"
        yield fielderror.invalid(at.child("partitionTypeAttribute"), name, detail)
        return
    if any(formats.fully_qualified_name(name, at)):
        # The declared rule reports it; no device could have such an attribute.
        return
    bare = name.removeprefix(f"{spec.driver}/")
    for position, device in enumerate(spec.devices):
        if not device.consumes_counters:
            continue
        path = at.child("devices").item(position).child("attributes").key(name)
        attribute = device.attributes.get(name) or device.attributes.get(bare)
        if attribute is None:
            detail = "device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set"
            yield fielderror.required(path, detail)
        elif attribute.string_value is None:
            detail = "must be a string value because `partitionTypeAttribute` names this attribute"
            yield fielderror.invalid(path, rendering.internal(attribute), detail)
