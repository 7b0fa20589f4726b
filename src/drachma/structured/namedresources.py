"""The model ``namedResourcesWithAttributes``, or ``namedResources`` in 1.30: resources with a name and attributes.

Each resource becomes one device: quantities become its capacity, other values its attributes. Values beyond the limits
of devices are left out and reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from drachma.api import resourceslice as devices
from drachma.api.v1alpha2 import parameters, resourceclaim, resourceslice
from drachma.structured import identifiers, model, resources, selectors
from drachma.values import names, quantity

_TEXT_BYTES: Final = 64
_PROPERTIES: Final = 32
_LIST_VALUES: Final = 48


class NamedResources:
    """The model, in both spellings."""

    def inventory(self, published: model.Slice) -> model.Inventory | None:
        resources = resources_of(published)
        if resources is None:
            return None
        devices_by_name: dict[str, devices.Device] = {}
        origins: dict[str, str] = {}
        omissions: list[str] = []
        for resource in resources:
            name = identifiers.device(resource.name)
            if name in devices_by_name:
                omissions.append(f"resource {resource.name}: has the same device name as {origins[name]}: {name}")
                continue
            devices_by_name[name], left_out = _device(resource, name)
            origins[name] = resource.name
            omissions += left_out
        return model.Inventory(devices=tuple(devices_by_name.values()), names=origins, omissions=tuple(omissions))

    def selectors(self, request: model.Request) -> tuple[str, ...] | None:
        if isinstance(request, parameters.DriverResourceRequest):
            return None if request.named_resources is None else (request.named_resources.selector,)
        attributes_request = request.named_resources_with_attributes
        if attributes_request is None:
            return None
        return tuple(each.selector for each in attributes_request.required) or (attributes_request.selector,)

    def filter(self, resource_filter: parameters.ResourceFilter) -> str | None:
        attributes_filter = resource_filter.named_resources_with_attributes or resource_filter.named_resources
        return None if attributes_filter is None else attributes_filter.selector

    def translate(self, selector: str, driver: str) -> str:
        return selectors.driver_selector(selector, driver)

    def result(self, resources: Sequence[str]) -> resourceclaim.StructuredResourceHandle:
        result = resourceclaim.NamedResourcesWithAttributesResult(resources=tuple(resources))
        return resourceclaim.StructuredResourceHandle(named_resources_with_attributes=result)

    def result_of_1_30(self, results: Iterable[tuple[str, object]]) -> resourceclaim.StructuredResourceHandle:
        return resourceclaim.StructuredResourceHandle(
            results=tuple(
                resourceclaim.DriverAllocationResult(
                    vendor_request_parameters=vendor,
                    named_resources=resourceclaim.NamedResourcesAllocationResult(name=name),
                )
                for name, vendor in results
            )
        )


def resources_of(published: model.Slice) -> tuple[resources.Resource, ...] | None:
    """Return the resources of a slice, or None if it is of another model."""
    if isinstance(published, resourceslice.NodeResourceSlice):
        model_slice = published.spec.named_resources_with_attributes
        return None if model_slice is None else tuple(map(resources.read_kep, model_slice))
    of_1_30 = published.named_resources
    return None if of_1_30 is None else tuple(map(resources.read_1_30, of_1_30.instances))


def _device(resource: resources.Resource, name: str) -> tuple[devices.Device, list[str]]:
    attributes: dict[str, devices.DeviceAttribute] = {}
    capacity: dict[str, devices.DeviceCapacity] = {}
    omissions: list[str] = []
    values = 0
    for attribute, value in resource.attributes.items():
        identifier = identifiers.attribute(attribute)
        values += len(value) if isinstance(value, tuple) else 1
        problem = _problem(value)
        if identifier in attributes or identifier in capacity:
            problem = f"becomes {identifier}, as another attribute does"
        elif len(attributes) + len(capacity) >= _PROPERTIES or values > _LIST_VALUES:
            problem = f"a device has at most {_PROPERTIES} attributes and {_LIST_VALUES} values"
        if problem:
            omissions.append(f"resource {resource.name}, attribute {attribute}: {problem}")
        elif isinstance(value, quantity.Quantity):
            capacity[identifier] = devices.DeviceCapacity(value=value)
        else:
            attributes[identifier] = _attribute(value)
    return devices.Device(name=name, attributes=attributes, capacity=capacity), omissions


def _problem(value: resources.Value) -> str:
    """Return why no attribute of a device can have a value; empty if one can."""
    if isinstance(value, resources.Version):
        texts: Sequence[object] = (value.text,)
    else:
        texts = value if isinstance(value, tuple) else (value,)
    if any(isinstance(text, str) and names.byte_length(text) > _TEXT_BYTES for text in texts):
        return f"texts of devices have at most {_TEXT_BYTES} bytes"
    return "" if texts else "lists of devices are not empty"


def _attribute(value: resources.Value) -> devices.DeviceAttribute:
    match value:
        case resources.Version(text):
            return devices.DeviceAttribute(version_value=text)
        case bool():
            return devices.DeviceAttribute(bool_value=value)
        case int():
            return devices.DeviceAttribute(int_value=value)
        case str():
            return devices.DeviceAttribute(string_value=value)
        case tuple():
            texts = tuple(each for each in value if isinstance(each, str))
            if texts:
                return devices.DeviceAttribute(string_values=texts)
            return devices.DeviceAttribute(int_values=tuple(each for each in value if isinstance(each, int)))
    raise TypeError(f"{type(value).__name__} is not an attribute's value")
