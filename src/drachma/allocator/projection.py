"""Projection: the parts of a device that an expression reads, as a key of the cached verdict.

Called by the verdicts of selectors, once per selector and driver; the functions made here run once per device.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from drachma.api import resourceslice

Path = tuple[str, ...]
"""Part of a device: ``("driver",)``, ``("attributes", domain)`` or ``("attributes", domain, name)``, the same with
``"capacity"``, and ``("allowMultipleAllocations",)``."""

Projection = Callable[[resourceslice.Device], Hashable]


def of(reads: frozenset[Path] | None, *, driver: str) -> Projection:
    """Return a function that is equal for devices of a driver with equal values of all that is read."""
    if reads is None:
        return lambda device: (driver, _attributes(device, None), _capacities(device, None), _shareable(device))
    attributes, attribute_domains = _names(reads, "attributes", driver=driver)
    capacities, capacity_domains = _names(reads, "capacity", driver=driver)
    if ("allowMultipleAllocations",) in reads or capacities or attribute_domains or capacity_domains:

        def project(device: resourceslice.Device) -> Hashable:
            return (
                driver,
                tuple(map(device.attributes.get, attributes)),
                tuple(_amount(device.capacity.get(name)) for name in capacities),
                _attributes(device, attribute_domains, driver=driver) if attribute_domains else None,
                _capacities(device, capacity_domains, driver=driver) if capacity_domains else None,
                _shareable(device),
            )

        return project
    if len(attributes) == 1:
        name = attributes[0]
        return lambda device: (driver, device.attributes.get(name))
    return lambda device: (driver, *map(device.attributes.get, attributes))


def _names(reads: frozenset[Path], kind: str, *, driver: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the keys of a device that are read, and the domains that are read as a whole."""
    names: list[str] = []
    domains: set[str] = set()
    for path in sorted(reads):
        match path:
            case (found, domain, name) if found == kind:
                names.append(f"{domain}/{name}")
                if domain == driver:
                    names.append(name)
            case (found, domain) if found == kind:
                domains.add(domain)
            case (found,) if found == kind:
                return (), _ALL_DOMAINS
    return tuple(names), frozenset(domains)


class _AllDomains(frozenset[str]):
    def __contains__(self, domain: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True


_ALL_DOMAINS: Final = _AllDomains()


def _attributes(device: resourceslice.Device, domains: frozenset[str] | None, *, driver: str = "") -> Hashable:
    return frozenset(
        (name, value)
        for name, value in device.attributes.items()
        if domains is None or _domain(name, driver) in domains
    )


def _capacities(device: resourceslice.Device, domains: frozenset[str] | None, *, driver: str = "") -> Hashable:
    return frozenset(
        (name, _amount(value))
        for name, value in device.capacity.items()
        if domains is None or _domain(name, driver) in domains
    )


def _domain(name: str, driver: str) -> str:
    domain, slash, _ = name.partition("/")
    return domain if slash else driver


def _amount(capacity: resourceslice.DeviceCapacity | None) -> Hashable:
    """Return an amount with its spelling, which expressions can read."""
    return None if capacity is None or capacity.value is None else (capacity.value.nanos, capacity.value.text)


def _shareable(device: resourceslice.Device) -> bool:
    return bool(device.allow_multiple_allocations)
