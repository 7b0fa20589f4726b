"""Rules for device attributes, and for the one attribute that names a device's partition type."""

from collections.abc import Mapping

from drachma.api import resourceslice, struct
from drachma.validation import fielderror, formats, printed
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path

_LISTS = (
    ("bools", "bool_values"),
    ("ints", "int_values"),
    ("strings", "string_values"),
    ("versions", "version_values"),
)
_SCALARS = ("bool_value", "int_value", "string_value", "version_value")


def check(attribute: resourceslice.DeviceAttribute, at: Path) -> Errors:
    """One attribute: exactly one kind of value, and that well formed."""
    if attribute.string_value is not None:
        yield from formats.attribute_text(attribute.string_value, at.child("string"))
    if attribute.version_value is not None:
        yield from formats.attribute_version(attribute.version_value, at.child("version"))
    for wire_name, name in _LISTS:
        values = getattr(attribute, name)
        if not values and not struct.is_absent(values):
            yield fielderror.invalid(at.child(wire_name), printed.wire(()), "must not be empty if specified")
        for position, value in enumerate(values if name in ("string_values", "version_values") else ()):
            rule = formats.attribute_text if name == "string_values" else formats.attribute_version
            yield from rule(value, at.child(wire_name).item(position))
    kinds = (*_SCALARS, *(name for _, name in _LISTS))
    count = sum(not struct.is_absent(getattr(attribute, name)) for name in kinds)
    if count != 1:
        value = printed.internal(attribute) if count else ""
        error = fielderror.invalid(at, value, "exactly one value must be specified", origin="union")
        yield from fielderror.covered([error])


def count_values(attributes: Mapping[str, resourceslice.DeviceAttribute]) -> int:
    """How many values a device's attributes have in all; each item of a list counts."""
    return sum(sum(len(getattr(attribute, name)) for _, name in _LISTS) or 1 for attribute in attributes.values())


def has_list(attributes: Mapping[str, resourceslice.DeviceAttribute]) -> bool:
    """Whether any attribute is a list, even an empty one."""
    return any(
        not struct.is_absent(getattr(attribute, name)) for attribute in attributes.values() for _, name in _LISTS
    )


def check_partition_type(spec: resourceslice.ResourceSliceSpec, at: Path) -> Errors:
    """``partitionTypeAttribute``: every device that consumes counters must have it, as a string."""
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
            yield fielderror.invalid(path, printed.internal(attribute), detail)
