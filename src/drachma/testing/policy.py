"""Builders for what administrators write: DeviceClass and DeviceTaintRule."""

from typing import Any, Self

from msgspec import structs

from drachma.api import deviceclass, devices, devicetaintrule, meta
from drachma.api.struct import ABSENT_TEXT
from drachma.testing import builder


class DeviceClassBuilder(builder.Builder[deviceclass.DeviceClass]):
    """Builds a DeviceClass."""

    __slots__ = ()

    def select(self, *expressions: str) -> Self:
        """With these CEL selectors more."""
        selectors = (*self._object.spec.selectors, *builder.selectors(expressions))
        return self._with(spec=structs.replace(self._object.spec, selectors=selectors))

    def config(self, driver: str, parameters: Any) -> Self:
        """With opaque configuration for all devices of the class."""
        opaque = devices.OpaqueDeviceConfiguration(driver=driver, parameters=parameters)
        entry = deviceclass.DeviceClassConfiguration(opaque=opaque)
        return self._with(spec=structs.replace(self._object.spec, config=(*self._object.spec.config, entry)))

    def extended_resource(self, name: str) -> Self:
        """Also serves pods that ask for this extended resource."""
        return self._with(spec=structs.replace(self._object.spec, extended_resource_name=name))


def device_class(name: str, *expressions: str) -> DeviceClassBuilder:
    """A class of the devices that meet all these expressions."""
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
    """A taint on the devices that driver, pool and device name; what is None matches all."""
    spec = devicetaintrule.DeviceTaintRuleSpec(
        device_selector=devicetaintrule.DeviceTaintSelector(driver=driver, pool=pool, device=device),
        taint=devices.DeviceTaint(key=key, value=value, effect=effect),
    )
    return builder.Builder(devicetaintrule.DeviceTaintRule(metadata=meta.ObjectMeta(name=name), spec=spec))
