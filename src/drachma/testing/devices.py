"""Builder for the devices of a ResourceSlice."""

from typing import Self

from msgspec import structs

from drachma.api import devices, nodeselector, resourceslice
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE
from drachma.testing import builder
from drachma.values import semver

AttributeValue = bool | int | str | semver.SemVer


def attribute(value: AttributeValue | list[AttributeValue]) -> resourceslice.DeviceAttribute:
    """An attribute whose type follows from the Python value; a list of one type gives a list attribute."""
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
        """The device."""
        return self._device

    def attributes(self, **values: AttributeValue | list[AttributeValue]) -> Self:
        """With these attributes in the driver's own domain."""
        return self._with(
            attributes={**self._device.attributes, **{name: attribute(value) for name, value in values.items()}}
        )

    def attribute(self, name: str, value: AttributeValue | list[AttributeValue]) -> Self:
        """With one more attribute, whose name may have a domain."""
        return self._with(attributes={**self._device.attributes, name: attribute(value)})

    def capacity(self, name: str, value: builder.Amount, *, default: builder.Amount | None = None) -> Self:
        """With one more capacity; with a default, one that requests may share."""
        policy = None if default is None else resourceslice.CapacityRequestPolicy(default=builder.amount(default))
        entry = resourceslice.DeviceCapacity(value=builder.amount(value), request_policy=policy)
        return self._with(capacity={**self._device.capacity, name: entry})

    def consumes(self, counter_set: str, **counters: builder.Amount) -> Self:
        """Takes this much from a counter set when allocated."""
        taken = {name: resourceslice.Counter(value=builder.amount(value)) for name, value in counters.items()}
        entry = resourceslice.DeviceCounterConsumption(counter_set=counter_set, counters=taken)
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

    def _with(self, **changes: object) -> Self:
        return type(self)(structs.replace(self._device, **changes))


def device(name: str) -> DeviceBuilder:
    """A device without attributes."""
    return DeviceBuilder(resourceslice.Device(name=name))
