"""Readings: the values of a device that an expression looked at, or that a constraint compares."""

from __future__ import annotations

from drachma.allocator import projection
from drachma.allocator.explanation import cause
from drachma.api import resourceslice


def readings(
    reads: frozenset[projection.Path] | None, device: resourceslice.Device, *, driver: str
) -> tuple[cause.Reading, ...]:
    """Return the values of a device that an expression reads; None means the whole device."""
    if reads is None:
        reads = frozenset({("driver",), ("attributes",), ("capacity",), ("allowMultipleAllocations",)})
    values: dict[str, cause.Value | None] = {}
    for path in sorted(reads):
        match path:
            case ("driver",):
                values["driver"] = driver
            case ("allowMultipleAllocations",):
                values["allowMultipleAllocations"] = bool(device.allow_multiple_allocations)
            case ("attributes" | "capacity" as kind, domain, name):
                parts = _parts(device, kind, driver=driver)
                full = f"{domain}/{name}"
                values[full] = parts.get(full)
            case ("attributes" | "capacity" as kind, *domains):
                parts = _parts(device, kind, driver=driver)
                values.update((full, parts[full]) for full in sorted(parts) if _is_in(full, domains))
            case _:
                raise AssertionError(f"a device has no part {path}")
    return tuple(cause.Reading(name, value) for name, value in values.items())


def attribute_value(attribute: resourceslice.DeviceAttribute | None) -> cause.Value | None:
    """Return the value of an attribute, or None."""
    if attribute is None:
        return None
    for values in (attribute.int_values, attribute.bool_values, attribute.string_values, attribute.version_values):
        if values:
            return tuple(values)
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value, attribute.version_value):
        if value is not None:
            return value
    return None


def _parts(device: resourceslice.Device, kind: str, *, driver: str) -> dict[str, cause.Value | None]:
    """Attributes or capacities by full name; a name without a domain belongs to the driver's."""
    if kind == "attributes":
        return {_full(name, driver): attribute_value(value) for name, value in device.attributes.items()}
    return {
        _full(name, driver): None if amount.value is None else str(amount.value)
        for name, amount in device.capacity.items()
    }


def _is_in(full: str, domains: list[str]) -> bool:
    return not domains or full.partition("/")[0] == domains[0]


def _full(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"
