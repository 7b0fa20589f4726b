"""Mappings of device classes to resources of a quota, with the measure of the charge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from drachma.queueing.configuration.configuration import CapacitySource, CounterSource, DeviceClassMapping
from drachma.queueing.configuration.gates import Gate, Gates


class CounterCharge(msgspec.Struct, frozen=True):
    """A resource that is charged by a counter of the devices."""

    resource: str
    source: CounterSource


class DeviceMappings(msgspec.Struct, frozen=True):
    """The mappings of a configuration, by device class."""

    resources: Mapping[str, str]
    counters: Mapping[str, tuple[CounterCharge, ...]]
    capacities: Mapping[str, tuple[CapacitySource, ...]]

    @classmethod
    def of(cls, mappings: Iterable[DeviceClassMapping]) -> DeviceMappings:
        """Return the mappings of a list. If several name a class, the first gives its resource and all give their
        counters.
        """
        resources: dict[str, str] = {}
        counters: dict[str, tuple[CounterCharge, ...]] = {}
        capacities: dict[str, tuple[CapacitySource, ...]] = {}
        for mapping in mappings:
            for name in mapping.device_class_names:
                resources.setdefault(name, mapping.name)
                for source in mapping.sources:
                    if source.counter is not None:
                        counters[name] = (*counters.get(name, ()), CounterCharge(mapping.name, source.counter))
                    if source.capacity is not None:
                        capacities[name] = (*capacities.get(name, ()), source.capacity)
        return cls(resources, counters, capacities)

    def is_by_source(self, device_class: str, gates: Gates) -> bool:
        """Return True if devices of a class are charged by their consumption and not by their number."""
        by_counter = gates.on(Gate.DRA_PARTITIONABLE_DEVICES) and device_class in self.counters
        return by_counter or (gates.on(Gate.DRA_CONSUMABLE_CAPACITY) and device_class in self.capacities)

    @property
    def binary_resources(self) -> frozenset[str]:
        """Resources that count the units of counters and capacities, mostly bytes."""
        counter_resources = {charge.resource for charges in self.counters.values() for charge in charges}
        return frozenset(counter_resources | {self.resources[name] for name in self.capacities})


NO_MAPPINGS = DeviceMappings({}, {}, {})
