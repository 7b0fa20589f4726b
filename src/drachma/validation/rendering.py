"""Rendering of values as upstream's messages show them.

Upstream prints a bad value with Go's JSON encoder. Most values look the same in Python; what does not is here:
named string types (JSON quoting instead of Go quoting), structs as the client wrote them (camelCase, empty optional
fields left out) and structs of the server's internal types (Go's field names, every field).
"""

import functools
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from drachma.api import devices, meta, resourceclaim, resourceclaimtemplate, resourceslice, v1beta1
from drachma.api.struct import Struct, is_absent
from drachma.values import quantity


class Rendered(str):
    """A text that a message shows as it is, without quotes of its own."""

    __slots__ = ()


NULL: Final = Rendered("null")

_ALWAYS: Final[Mapping[type[Struct], frozenset[str]]] = {
    devices.CELDeviceSelector: frozenset({"expression"}),
    devices.OpaqueDeviceConfiguration: frozenset({"driver", "parameters"}),
    meta.Condition: frozenset({"type", "status", "last_transition_time", "reason", "message"}),
    meta.OwnerReference: frozenset({"api_version", "kind", "name", "uid"}),
    resourceclaim.AllocatedDeviceStatus: frozenset({"driver", "pool", "device", "conditions"}),
    resourceclaim.DeviceDerivedAttribute: frozenset({"name", "expression"}),
    resourceclaim.DeviceRequest: frozenset({"name"}),
    resourceclaim.DeviceSubRequest: frozenset({"name", "device_class_name"}),
    resourceclaim.ExactDeviceRequest: frozenset({"device_class_name"}),
    resourceclaim.ResourceClaimConsumerReference: frozenset({"resource", "name", "uid"}),
    resourceslice.Counter: frozenset({"value"}),
    resourceslice.CounterSet: frozenset({"name"}),
    resourceslice.DeviceCounterConsumption: frozenset({"counter_set"}),
    v1beta1.DeviceRequest: frozenset({"name", "device_class_name"}),
}
"""Fields that the wire form shows even when they are empty; upstream declares them without ``omitempty``."""

_ORDER: Final[Mapping[type[Struct], tuple[str, ...]]] = {
    v1beta1.DeviceRequest: (
        "name", "device_class_name", "selectors", "allocation_mode", "count", "admin_access", "first_available",
        "tolerations", "capacity", "derived_attributes",
    ),
}  # fmt: skip
"""Where upstream's order of fields is not that of the Python type."""

_TAGGED: Final = (meta.ObjectMeta, meta.OwnerReference, meta.ManagedFieldsEntry, meta.Condition)
"""Types that even upstream's internal types share with the wire."""

_GO_NAMES: Final = {"cel": "CEL", "api_group": "APIGroup", "uid": "UID", "share_id": "ShareID", "ips": "IPs"}

ESCAPES: Final = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


def named(text: str) -> Rendered:
    """A string of a named Go type, such as an enum."""
    return Rendered(_text(text))


Fields = Mapping[type[Struct], frozenset[str]]
"""Some fields of some types."""


def wire(value: object, *, always: Fields = _ALWAYS) -> Rendered:
    """A value in the form that clients write, with the fields that are shown even when they are empty."""
    return Rendered(_wire(value, always))


def internal(value: object) -> Rendered:
    """A value in the form of upstream's internal types."""
    return Rendered(_internal(value))


def internal_fields(document: Mapping[str, Any] | None, *fields: tuple[str, str, Any]) -> Rendered:
    """Return a document in the form of an internal type: each field by Go's name, its wire name and its zero value."""
    if document is None:
        return NULL
    parts = (f'"{go_name}":{_wire(document.get(name, zero))}' for go_name, name, zero in fields)
    return Rendered("{" + ",".join(parts) + "}")


def _text(text: str) -> str:
    return msgspec.json.encode(str(text)).decode().translate(ESCAPES)


def _wire(value: object, always: Fields = _ALWAYS) -> str:
    form = functools.partial(_wire, always=always)
    if isinstance(value, Struct):
        kind = type(value)
        wire_names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
        defaults = dict(zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True))
        display = []
        for name in _ORDER.get(kind, kind.__struct_fields__):
            item = getattr(value, name)
            is_empty = item is None if defaults[name] is None else not item
            if not is_empty or name in always.get(kind, ()):
                display.append(f'"{wire_names[name]}":{_item(value, name, form)}')
        return "{" + ",".join(display) + "}"
    return _plain(value, form)


def _internal(value: object) -> str:
    if isinstance(value, _TAGGED):
        return _wire(value)
    if isinstance(value, resourceclaimtemplate.ResourceClaimTemplateSpec):
        # The template's metadata is embedded: its fields appear beside the spec.
        head = _wire(value.metadata)[1:-1]
        return "{" + (f"{head}," if head else "") + f'"Spec":{_internal(value.spec)}' + "}"
    if isinstance(value, Struct):
        display = (f'"{_go_name(name)}":{_item(value, name, _internal)}' for name in type(value).__struct_fields__)
        return "{" + ",".join(display) + "}"
    return _plain(value, _internal)


def _item(owner: Struct, name: str, form: Any) -> str:
    value = getattr(owner, name)
    if isinstance(value, tuple | Mapping) and is_absent(value):
        return "null"
    if value is None and isinstance(owner, resourceslice.Counter | resourceslice.DeviceCapacity) and name == "value":
        return '"0"'
    if isinstance(owner, devices.OpaqueDeviceConfiguration) and name == "parameters" and value is not None:
        # The bytes of the client, and not a map of Go, whose keys would be sorted.
        return msgspec.json.encode(value).decode().translate(ESCAPES)
    display: str = form(value)
    return display


def _plain(value: object, form: Any) -> str:
    match value:
        case None:
            return "null"
        case Rendered():
            return value
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case int():
            return str(int(value))
        case float():
            # Go's encoder leaves out a fraction of zero.
            return msgspec.json.encode(value).decode().removesuffix(".0")
        case quantity.Quantity():
            return _text(str(value))
        case datetime():
            return msgspec.json.encode(value).decode()
        case Mapping():
            return "{" + ",".join(f"{_text(key)}:{form(value[key])}" for key in sorted(value)) + "}"
        case list() | tuple():
            return "[" + ",".join(form(item) for item in value) + "]"
        case _:
            raise TypeError(f"{type(value).__name__} is not a value of an API object")


def _go_name(name: str) -> str:
    return _GO_NAMES.get(name) or "".join(part.capitalize() for part in name.split("_"))
