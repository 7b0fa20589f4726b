"""The model ``namedResourcesWithAttributes``, or ``namedResources`` in 1.30: resources with a name and attributes.

Each becomes one device: quantities are its capacity, all else its attributes. Limits of devices hold: what exceeds them
is left out, and said.
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
        found = resources_of(published)
        if found is None:
            return None
        made: dict[str, devices.Device] = {}
        origins: dict[str, str] = {}
        omissions: list[str] = []
        for resource in found:
            name = identifiers.device(resource.name)
            if name in made:
                omissions.append(f"resource {resource.name}: has the same device name as {origins[name]}: {name}")
                continue
            made[name], left_out = _device(resource, name)
            origins[name] = resource.name
            omissions += left_out
        return model.Inventory(devices=tuple(made.values()), names=origins, omissions=tuple(omissions))

    def selectors(self, request: model.Request) -> tuple[str, ...] | None:
        if isinstance(request, parameters.DriverResourceRequest):
            return None if request.named_resources is None else (request.named_resources.selector,)
        asked = request.named_resources_with_attributes
        if asked is None:
            return None
        return tuple(each.selector for each in asked.required) or (asked.selector,)

    def filter(self, given: parameters.ResourceFilter) -> str | None:
        found = given.named_resources_with_attributes or given.named_resources
        return None if found is None else found.selector

    def translate(self, selector: str, driver: str) -> str:
        return selectors.for_driver(selector, driver)

    def result(self, resources: Sequence[str]) -> resourceclaim.StructuredResourceHandle:
        named = resourceclaim.NamedResourcesWithAttributesResult(resources=tuple(resources))
        return resourceclaim.StructuredResourceHandle(named_resources_with_attributes=named)

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
    """The resources of a slice; None if it is of another model."""
    if isinstance(published, resourceslice.NodeResourceSlice):
        named = published.spec.named_resources_with_attributes
        return None if named is None else tuple(map(resources.of_kep, named))
    of_1_30 = published.named_resources
    return None if of_1_30 is None else tuple(map(resources.of_1_30, of_1_30.instances))


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
    """Why no attribute of a device can have a value; empty if one can."""
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
