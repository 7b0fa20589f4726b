"""Claims of v1alpha2 as claims of v1, and allocations in the terms of v1alpha2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import structs

from drachma import cel, errors
from drachma.api import deviceclass, devices, resourceclaim, resourceclaimtemplate
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.api.v1alpha2 import resourceclaimtemplate as alpha_template
from drachma.api.v1alpha2 import resourceclass as alpha_class
from drachma.claims import standins
from drachma.structured import requests, resolution

DEVICE_CLASS: Final = "structured.dra.k8s.io"
"""Class of all requests that represent requests of v1alpha2. All devices are in it."""

FINALIZER: Final = "structured.dra.k8s.io/delete-protection"
"""Finalizer of a claim of v1alpha2 while it is allocated."""

ResourceName = Callable[[str, str, str], str]
"""Function that returns the resource name of a device, by driver, pool and device."""


def spec_of(resolved: resolution.Resolution, *, device_class: str = DEVICE_CLASS) -> resourceclaim.ResourceClaimSpec:
    """Return the spec of a claim with these parameters.

    Raises:
        errors.InvalidValueError: a request or filter is of an unknown model.
        cel.CompilationError: a selector does not compile.
    """
    needs = requests.needs(resolved.of_claim, resolved.of_class)
    return resourceclaim.ResourceClaimSpec(
        devices=resourceclaim.DeviceClaim(
            requests=tuple(request_for(need, device_class=device_class) for need in needs),
            config=tuple(configuration(resolved, needs)),
        )
    )


def template_of(
    template: alpha_template.ResourceClaimTemplate, objects: resolution.Objects
) -> resourceclaimtemplate.ResourceClaimTemplate | None:
    """Return a v1 template whose claims request the same devices, of a device class with the resource class's name.

    Returns None while the template waits for other objects, or cannot be translated.
    """
    spec = template.spec.spec
    resolved = resolution.resolve(spec, template.metadata.namespace, objects)
    if isinstance(resolved, resolution.Waiting):
        return None
    try:
        own = spec_of(resolved, device_class=spec.resource_class_name)
    except (errors.InvalidValueError, cel.CompilationError):
        return None
    return resourceclaimtemplate.ResourceClaimTemplate(
        metadata=template.metadata, spec=resourceclaimtemplate.ResourceClaimTemplateSpec(spec=own)
    )


def class_of(resource_class: alpha_class.ResourceClass) -> deviceclass.DeviceClass:
    """Return a device class of the same name that has all devices of the driver."""
    selector = devices.CELDeviceSelector(expression=f'device.driver == "{resource_class.driver_name}"')
    spec = deviceclass.DeviceClassSpec(selectors=(devices.DeviceSelector(cel=selector),))
    return deviceclass.DeviceClass(metadata=resource_class.metadata, spec=spec)


def request_for(
    need: requests.Need, *, device_class: str, expressions: tuple[str, ...] | None = None
) -> resourceclaim.DeviceRequest:
    """Return a request for one device that meets a need, or that matches other expressions."""
    selectors = need.expressions() if expressions is None else expressions
    exactly = resourceclaim.ExactDeviceRequest(
        device_class_name=device_class,
        selectors=tuple(devices.DeviceSelector(cel=devices.CELDeviceSelector(expression=each)) for each in selectors),
        allocation_mode="ExactCount",
        count=1,
    )
    return resourceclaim.DeviceRequest(name=need.name, exactly=exactly)


def status_of(
    allocation: resourceclaim.AllocationResult, resolved: resolution.Resolution, *, resource_name: ResourceName
) -> alpha.ResourceClaimStatus:
    """Return the status of a claim whose v1 claim was allocated, without its consumers."""
    needs = {need.name: need for need in requests.needs(resolved.of_claim, resolved.of_class)}
    is_1_30 = requests.is_spelled_as_1_30(resolved.of_claim)
    by_driver: dict[str, list[tuple[requests.Need | None, str]]] = {}
    for result in allocation.devices.results:
        name = resource_name(result.driver, result.pool, result.device)
        by_driver.setdefault(str(result.driver), []).append((needs.get(result.request), name))
    node = standins.node_of(allocation)
    handles = []
    for driver, results in by_driver.items():
        used = next((need.asked_by for need, _ in results if need is not None), None)
        if used is None:
            continue
        if is_1_30:
            data = used.result_of_1_30((name, need.vendor if need else None) for need, name in results)
        else:
            data = used.result([name for _, name in results])
        data = structs.replace(
            data,
            node_name=node,
            vendor_class_parameters=requests.vendor_of_class(resolved.of_class, driver),
            vendor_claim_parameters=requests.vendor_of_claim(resolved.of_claim, driver),
        )
        handles.append(alpha.ResourceHandle(driver_name=driver, structured_data=data))
    return alpha.ResourceClaimStatus(
        driver_name=resolved.resource_class.driver_name,
        allocation=alpha.AllocationResult(
            resource_handles=tuple(handles),
            available_on_nodes=allocation.node_selector,
            shareable=resolved.of_claim.shareable or None,
        ),
    )


def configuration(
    resolved: resolution.Resolution, needs: tuple[requests.Need, ...]
) -> list[resourceclaim.DeviceClaimConfiguration]:
    """Return the vendor's parameters as configuration: of the class, then of the claim, then of single requests."""
    entries: list[resourceclaim.DeviceClaimConfiguration] = []
    for driver in dict.fromkeys(need.driver for need in needs):
        names = tuple(need.name for need in needs if need.driver == driver)
        for parameters in (
            requests.vendor_of_class(resolved.of_class, driver),
            requests.vendor_of_claim(resolved.of_claim, driver),
        ):
            entries += _entry(driver, names, parameters)
    for need in needs:
        entries += _entry(need.driver, (need.name,), need.vendor)
    return entries


def _entry(driver: str, names: tuple[str, ...], parameters: Any) -> list[resourceclaim.DeviceClaimConfiguration]:
    if not isinstance(parameters, dict) or not parameters:
        return []
    opaque = devices.OpaqueDeviceConfiguration(driver=driver, parameters=parameters)
    return [resourceclaim.DeviceClaimConfiguration(requests=names, opaque=opaque)]
