"""Builder for the devices of a ResourceSlice: what drivers publish, and what tests make up.

A builder is immutable: each method gives a new one, ``build()`` gives the device.

>>> device("gpu-0").attributes(model="x").capacity("memory", "80Gi").build().attributes["model"].string_value
'x'
"""

from collections.abc import Mapping
from typing import Self

from msgspec import structs

from drachma.api import devices, nodeallocatable, nodeselector, resourceslice
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE
from drachma.values import quantity, semver

AttributeValue = bool | int | str | semver.SemVer

Amount = str | int
"""A quantity by its text, or a whole number."""


def amount(value: Amount) -> quantity.Quantity:
    """Return the quantity."""
    return quantity.Quantity.parse(str(value))


def attribute(value: AttributeValue | list[AttributeValue]) -> resourceslice.DeviceAttribute:
    """Return an attribute whose type follows from the Python value; a list of one type gives a list attribute."""
    match value:
        case bool():
            return resourceslice.DeviceAttribute(bool_value=value)
        case int():
            return resourceslice.DeviceAttribute(int_value=value)
        case str():
            return resourceslice.DeviceAttribute(string_value=value)
        case semver.SemVer():
            return resourceslice.DeviceAttribute(version_value=str(value))
        case _:
            return _list_attribute(value)


def _list_attribute(values: list[AttributeValue]) -> resourceslice.DeviceAttribute:
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return resourceslice.DeviceAttribute(bool_values=tuple(bool(value) for value in values))
    if kinds == {int}:
        return resourceslice.DeviceAttribute(int_values=tuple(value for value in values if isinstance(value, int)))
    if kinds == {str}:
        return resourceslice.DeviceAttribute(string_values=tuple(str(value) for value in values))
    if kinds == {semver.SemVer}:
        return resourceslice.DeviceAttribute(version_values=tuple(str(value) for value in values))
    raise TypeError(f"a list attribute holds values of one type, not {values!r}")


class DeviceBuilder:
    """An immutable builder of one device."""

    __slots__ = ("_device",)

    def __init__(self, built: resourceslice.Device) -> None:
        self._device = built

    def build(self) -> resourceslice.Device:
        """Return the device."""
        return self._device

    def attributes(self, **values: AttributeValue | list[AttributeValue]) -> Self:
        """With these attributes in the driver's own domain."""
        return self._with(
            attributes={**self._device.attributes, **{name: attribute(value) for name, value in values.items()}}
        )

    def attribute(self, name: str, value: AttributeValue | list[AttributeValue]) -> Self:
        """With one more attribute, whose name may have a domain."""
        return self._with(attributes={**self._device.attributes, name: attribute(value)})

    def with_attributes(self, values: Mapping[str, AttributeValue | list[AttributeValue]]) -> Self:
        """With these attributes, whose names may have domains, such as those of ``driver.pci_attributes()``."""
        return self._with(
            attributes={**self._device.attributes, **{name: attribute(value) for name, value in values.items()}}
        )

    def capacity(self, name: str, value: Amount, *, default: Amount | None = None) -> Self:
        """With one more capacity; with a default, one that requests may share."""
        policy = None if default is None else resourceslice.CapacityRequestPolicy(default=amount(default))
        return self._add_capacity(name, value, policy)

    def consumable(
        self,
        name: str,
        value: Amount,
        *,
        default: Amount,
        least: Amount,
        most: Amount | None = None,
        step: Amount | None = None,
    ) -> Self:
        """With a capacity that claims share: each gets what it asks for, within bounds, in whole steps."""
        bounds = resourceslice.CapacityRequestPolicyRange(
            min=amount(least),
            max=None if most is None else amount(most),
            step=None if step is None else amount(step),
        )
        policy = resourceslice.CapacityRequestPolicy(default=amount(default), valid_range=bounds)
        return self._add_capacity(name, value, policy)

    def choosable(self, name: str, value: Amount, *, default: Amount, values: tuple[Amount, ...]) -> Self:
        """With a capacity that claims share: each gets one of these amounts, the next larger one it asks for."""
        policy = resourceslice.CapacityRequestPolicy(default=amount(default), valid_values=tuple(map(amount, values)))
        return self._add_capacity(name, value, policy)

    def stands_for(self, resource: str, *, capacity: str | None = None, multiplier: Amount = 1) -> Self:
        """Is so much of a resource of the node (KEP-5517): of each unit of a capacity, or the device as a whole."""
        factor = amount(multiplier)
        mapping = (
            nodeallocatable.NodeAllocatableMapping(device_multiplier=factor)
            if capacity is None
            else nodeallocatable.NodeAllocatableMapping(capacity_key=capacity, capacity_multiplier=factor)
        )
        entry = nodeallocatable.NodeAllocatableResource(mapping=mapping)
        return self._with(node_allocatable_resources={**self._device.node_allocatable_resources, resource: entry})

    def consumes(self, counter_set: str, **counters: Amount) -> Self:
        """Takes this much from a counter set when allocated."""
        amounts = {name: resourceslice.Counter(value=amount(value)) for name, value in counters.items()}
        entry = resourceslice.DeviceCounterConsumption(counter_set=counter_set, counters=amounts)
        return self._with(consumes_counters=(*self._device.consumes_counters, entry))

    def taint(self, key: str, *, effect: str = "NoSchedule", value: str = ABSENT_TEXT) -> Self:
        """With one more taint."""
        entry = devices.DeviceTaint(key=key, value=value, effect=effect)
        return self._with(taints=(*self._device.taints, entry))

    def shared(self) -> Self:
        """May be allocated several times at once."""
        return self._with(allow_multiple_allocations=True)

    def on_node(self, name: str) -> Self:
        """Usable on this node only; for slices with per-device node selection."""
        return self._with(node_name=name)

    def on_nodes(self, selector: nodeselector.NodeSelector) -> Self:
        """Usable on the nodes selected; for slices with per-device node selection."""
        return self._with(node_selector=selector)

    def binding(self, *conditions: str, failures: tuple[str, ...] = ABSENT_TUPLE) -> Self:
        """Pods wait for these conditions before they are bound."""
        return self._with(binding_conditions=conditions, binding_failure_conditions=failures)

    def _add_capacity(self, name: str, value: Amount, policy: resourceslice.CapacityRequestPolicy | None) -> Self:
        entry = resourceslice.DeviceCapacity(value=amount(value), request_policy=policy)
        return self._with(capacity={**self._device.capacity, name: entry})

    def _with(self, **changes: object) -> Self:
        return type(self)(structs.replace(self._device, **changes))


def device(name: str) -> DeviceBuilder:
    """Return a device without attributes."""
    return DeviceBuilder(resourceslice.Device(name=name))
