"""Readings: the values of a device that an expression looked at, or that a constraint compares."""

from __future__ import annotations

from drachma.allocator import projection
from drachma.allocator.explanation import cause
from drachma.api import resourceslice


def readings(
    reads: frozenset[projection.Path] | None, device: resourceslice.Device, *, driver: str
) -> tuple[cause.Reading, ...]:
    """What an expression that reads these parts saw of a device, by name; None stands for all of it."""
    if reads is None:
        reads = frozenset({("driver",), ("attributes",), ("capacity",), ("allowMultipleAllocations",)})
    found: dict[str, cause.Value | None] = {}
    for path in sorted(reads):
        match path:
            case ("driver",):
                found["driver"] = driver
            case ("allowMultipleAllocations",):
                found["allowMultipleAllocations"] = bool(device.allow_multiple_allocations)
            case ("attributes" | "capacity" as kind, domain, name):
                known = _parts(device, kind, driver=driver)
                full = f"{domain}/{name}"
                found[full] = known.get(full)
            case ("attributes" | "capacity" as kind, *domains):
                known = _parts(device, kind, driver=driver)
                found.update((full, known[full]) for full in sorted(known) if _is_in(full, domains))
            case _:
                raise AssertionError(f"a device has no part {path}")
    return tuple(cause.Reading(name, value) for name, value in found.items())


def attribute_value(attribute: resourceslice.DeviceAttribute | None) -> cause.Value | None:
    """The value of an attribute; None where there is none."""
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
