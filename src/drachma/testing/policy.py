"""Builders for DeviceClass, DeviceTaintRule and ResourceSlice."""

from __future__ import annotations

from typing import Any, Self

from msgspec import structs

from drachma.api import deviceclass, devices, devicetaintrule, meta, nodeselector, resourceslice
from drachma.api.struct import ABSENT_TEXT
from drachma.driver import devices as device_builders
from drachma.testing import builder


class DeviceClassBuilder(builder.Builder[deviceclass.DeviceClass]):
    """Builds a DeviceClass."""

    __slots__ = ()

    def select(self, *expressions: str) -> Self:
        """Add CEL selectors."""
        selectors = (*self._object.spec.selectors, *builder.selectors(expressions))
        return self._with(spec=structs.replace(self._object.spec, selectors=selectors))

    def config(self, driver: str, parameters: Any) -> Self:
        """Add opaque configuration for all devices of the class."""
        opaque = devices.OpaqueDeviceConfiguration(driver=driver, parameters=parameters)
        entry = deviceclass.DeviceClassConfiguration(opaque=opaque)
        return self._with(spec=structs.replace(self._object.spec, config=(*self._object.spec.config, entry)))

    def extended_resource(self, name: str) -> Self:
        """Set the extended resource that the class backs."""
        return self._with(spec=structs.replace(self._object.spec, extended_resource_name=name))


def device_class(name: str, *expressions: str) -> DeviceClassBuilder:
    """Return a builder for a class of the devices that match all expressions."""
    spec = deviceclass.DeviceClassSpec(selectors=builder.selectors(expressions))
    return DeviceClassBuilder(deviceclass.DeviceClass(metadata=meta.ObjectMeta(name=name), spec=spec))


def taint_rule(
    name: str,
    *,
    key: str,
    effect: str = "NoSchedule",
    value: str = ABSENT_TEXT,
    driver: str | None = None,
    pool: str | None = None,
    device: str | None = None,
) -> builder.Builder[devicetaintrule.DeviceTaintRule]:
    """Return a builder for a rule that taints the devices of a driver, pool and name. None matches all."""
    spec = devicetaintrule.DeviceTaintRuleSpec(
        device_selector=devicetaintrule.DeviceTaintSelector(driver=driver, pool=pool, device=device),
        taint=devices.DeviceTaint(key=key, value=value, effect=effect),
    )
    return builder.Builder(devicetaintrule.DeviceTaintRule(metadata=meta.ObjectMeta(name=name), spec=spec))


class SliceBuilder(builder.Builder[resourceslice.ResourceSlice]):
    """Builds a ResourceSlice."""

    __slots__ = ()

    def on_node(self, name: str) -> Self:
        """Publish the devices for one node only."""
        return self._replace_spec(node_name=name)

    def on_nodes(self, selector: nodeselector.NodeSelector) -> Self:
        """Publish the devices for selected nodes."""
        return self._replace_spec(node_selector=selector)

    def on_all_nodes(self) -> Self:
        """Publish the devices for every node."""
        return self._replace_spec(all_nodes=True)

    def per_device(self) -> Self:
        """Let each device name its nodes."""
        return self._replace_spec(per_device_node_selection=True)

    def devices(self, *added: device_builders.DeviceBuilder | str) -> Self:
        """Add devices. A text is the name of a device without attributes."""
        built = tuple(resourceslice.Device(name=entry) if isinstance(entry, str) else entry.build() for entry in added)
        return self._replace_spec(devices=(*self._object.spec.devices, *built))

    def counters(self, name: str, **values: device_builders.Amount) -> Self:
        """Add a shared counter set."""
        counters = {key: resourceslice.Counter(value=device_builders.amount(value)) for key, value in values.items()}
        entry = resourceslice.CounterSet(name=name, counters=counters)
        return self._replace_spec(shared_counters=(*self._object.spec.shared_counters, entry))

    def _replace_spec(self, **changes: object) -> Self:
        return self._with(spec=structs.replace(self._object.spec, **changes))


def resource_slice(
    name: str, *, driver: str, pool: str | None = None, generation: int = 1, slices: int = 1
) -> SliceBuilder:
    """Return a builder for a slice without devices. The default name of its pool is its own."""
    in_pool = resourceslice.ResourcePool(name=pool or name, generation=generation, resource_slice_count=slices)
    spec = resourceslice.ResourceSliceSpec(driver=driver, pool=in_pool)
    return SliceBuilder(resourceslice.ResourceSlice(metadata=meta.ObjectMeta(name=name), spec=spec))
