"""Conversion between the versions of ``resource.k8s.io``; v1 is the form in memory.

v1beta2 has v1's shapes. v1beta1 and v1alpha3 have requests without ``exactly`` and devices with a ``basic`` part.
Capacities of v1alpha3 are plain quantities, without v1's policies of sharing. As upstream, a string or number counts as
set if it is not zero, and a list or pointer if it is present.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import structs

from drachma.api import meta, resourceclaim, resourceclaimtemplate, resourceslice, scheme, v1alpha3, v1beta1
from drachma.api.struct import Struct, is_absent
from drachma.values import quantity

_ZERO: Final = quantity.Quantity.parse("0")
_NO_REQUEST: Final = resourceclaim.ExactDeviceRequest()


def to_memory(wire: meta.Object) -> meta.Object:
    """Return the v1 form of an object in any wire form."""
    convert = _TO_MEMORY.get(type(wire))
    return convert(wire) if convert else wire


def to_wire(api_object: meta.Object, api_version: str) -> meta.Object:
    """Return the wire form of an object in a version. Raises DecodeError if its kind does not have the version."""
    kind = scheme.of(type(api_object))
    scheme.find(api_version, kind.name)
    shape = kind.shape(api_version)
    return api_object if shape is kind.model else _TO_WIRE[shape](api_object)


def _fields_of(source: Struct, target: type[Struct]) -> dict[str, Any]:
    """Return the fields of ``source`` that ``target`` has too; absent values stay absent."""
    return {name: getattr(source, name) for name in target.__struct_fields__ if hasattr(source, name)}


def _each(items: tuple[Any, ...], convert: Callable[[Any], Any]) -> tuple[Any, ...]:
    return items if not items else tuple(convert(item) for item in items)


def _each_value(items: Mapping[str, Any], convert: Callable[[Any], Any]) -> Mapping[str, Any]:
    return items if not items else {key: convert(value) for key, value in items.items()}


def _request_to_memory(request: v1beta1.DeviceRequest) -> resourceclaim.DeviceRequest:
    main = resourceclaim.ExactDeviceRequest(**_fields_of(request, resourceclaim.ExactDeviceRequest))
    is_set = (
        bool(main.device_class_name or main.allocation_mode or main.count)
        or not is_absent(main.selectors)
        or not is_absent(main.tolerations)
        or not is_absent(main.derived_attributes)
        or main.admin_access is not None
        or main.capacity is not None
    )
    return resourceclaim.DeviceRequest(
        name=request.name, exactly=main if is_set else None, first_available=request.first_available
    )


def _request_to_v1beta1(request: resourceclaim.DeviceRequest) -> v1beta1.DeviceRequest:
    main = _fields_of(request.exactly or _NO_REQUEST, resourceclaim.ExactDeviceRequest)
    # Upstream always writes the class name, also an empty one.
    main["device_class_name"] = main["device_class_name"] or ""
    return v1beta1.DeviceRequest(name=request.name, first_available=request.first_available, **main)


def _claim_spec_to_memory(spec: v1beta1.ResourceClaimSpec) -> resourceclaim.ResourceClaimSpec:
    if spec.devices is _V1BETA1_CLAIM_SPEC.devices:
        return resourceclaim.ResourceClaimSpec()
    devices = resourceclaim.DeviceClaim(
        requests=_each(spec.devices.requests, _request_to_memory),
        constraints=spec.devices.constraints,
        config=spec.devices.config,
    )
    return resourceclaim.ResourceClaimSpec(devices=devices)


def _claim_spec_to_v1beta1(spec: resourceclaim.ResourceClaimSpec) -> v1beta1.ResourceClaimSpec:
    if spec.devices is _V1_CLAIM_SPEC.devices:
        return v1beta1.ResourceClaimSpec()
    devices = v1beta1.DeviceClaim(
        requests=_each(spec.devices.requests, _request_to_v1beta1),
        constraints=spec.devices.constraints,
        config=spec.devices.config,
    )
    return v1beta1.ResourceClaimSpec(devices=devices)


_V1_CLAIM_SPEC = resourceclaim.ResourceClaimSpec()
_V1BETA1_CLAIM_SPEC = v1beta1.ResourceClaimSpec()


def _claim_to_memory(claim: v1beta1.ResourceClaim) -> resourceclaim.ResourceClaim:
    return resourceclaim.ResourceClaim(
        metadata=claim.metadata, spec=_claim_spec_to_memory(claim.spec), status=claim.status
    )


def _claim_to_v1beta1(claim: resourceclaim.ResourceClaim) -> v1beta1.ResourceClaim:
    return v1beta1.ResourceClaim(metadata=claim.metadata, spec=_claim_spec_to_v1beta1(claim.spec), status=claim.status)


def _template_to_memory(
    template: v1beta1.ResourceClaimTemplate,
) -> resourceclaimtemplate.ResourceClaimTemplate:
    spec = resourceclaimtemplate.ResourceClaimTemplateSpec(
        metadata=template.spec.metadata, spec=_claim_spec_to_memory(template.spec.spec)
    )
    return resourceclaimtemplate.ResourceClaimTemplate(metadata=template.metadata, spec=spec)


def _template_to_v1beta1(
    template: resourceclaimtemplate.ResourceClaimTemplate,
) -> v1beta1.ResourceClaimTemplate:
    spec = v1beta1.ResourceClaimTemplateSpec(
        metadata=template.spec.metadata, spec=_claim_spec_to_v1beta1(template.spec.spec)
    )
    return v1beta1.ResourceClaimTemplate(metadata=template.metadata, spec=spec)


def _device_to_memory(device: v1beta1.Device) -> resourceslice.Device:
    basic = structs.asdict(device.basic) if device.basic else {}
    return resourceslice.Device(name=device.name, **basic)


def _device_to_v1beta1(device: resourceslice.Device) -> v1beta1.Device:
    basic = resourceslice.BasicDevice(**_fields_of(device, resourceslice.BasicDevice))
    return v1beta1.Device(name=device.name, basic=basic)


def _slice_to_memory(slice_: v1beta1.ResourceSlice) -> resourceslice.ResourceSlice:
    fields = structs.asdict(slice_.spec)
    fields["devices"] = _each(slice_.spec.devices, _device_to_memory)
    # v1beta1 cannot distinguish an empty node name or a false allNodes from an absent one; v1 refuses them if set.
    fields["node_name"] = slice_.spec.node_name or None
    fields["all_nodes"] = slice_.spec.all_nodes or None
    spec = resourceslice.ResourceSliceSpec(**fields)
    return resourceslice.ResourceSlice(metadata=slice_.metadata, spec=spec)


def _slice_to_v1beta1(slice_: resourceslice.ResourceSlice) -> v1beta1.ResourceSlice:
    fields = structs.asdict(slice_.spec)
    fields["devices"] = _each(slice_.spec.devices, _device_to_v1beta1)
    fields["node_name"] = slice_.spec.node_name or None
    fields["all_nodes"] = slice_.spec.all_nodes or None
    return v1beta1.ResourceSlice(metadata=slice_.metadata, spec=v1beta1.ResourceSliceSpec(**fields))


def _v1alpha3_slice_to_memory(slice_: v1alpha3.ResourceSlice) -> resourceslice.ResourceSlice:
    fields = structs.asdict(slice_.spec)
    fields["devices"] = _each(slice_.spec.devices, _v1alpha3_device_to_v1beta1)
    spec = v1beta1.ResourceSliceSpec(**fields)
    return _slice_to_memory(v1beta1.ResourceSlice(metadata=slice_.metadata, spec=spec))


def _slice_to_v1alpha3(slice_: resourceslice.ResourceSlice) -> v1alpha3.ResourceSlice:
    fields = structs.asdict(_slice_to_v1beta1(slice_).spec)
    fields["devices"] = _each(fields["devices"], _v1beta1_device_to_v1alpha3)
    return v1alpha3.ResourceSlice(metadata=slice_.metadata, spec=v1alpha3.ResourceSliceSpec(**fields))


def _v1alpha3_device_to_v1beta1(device: v1alpha3.Device) -> v1beta1.Device:
    if device.basic is None:
        return v1beta1.Device(name=device.name)
    fields = structs.asdict(device.basic)
    fields["capacity"] = _each_value(device.basic.capacity, lambda amount: resourceslice.DeviceCapacity(value=amount))
    return v1beta1.Device(name=device.name, basic=resourceslice.BasicDevice(**fields))


def _v1beta1_device_to_v1alpha3(device: v1beta1.Device) -> v1alpha3.Device:
    assert device.basic is not None, "every device of v1 has a basic part in v1beta1"
    fields = structs.asdict(device.basic)
    fields["capacity"] = _each_value(device.basic.capacity, lambda capacity: capacity.value or _ZERO)
    return v1alpha3.Device(name=device.name, basic=v1alpha3.BasicDevice(**fields))


_TO_MEMORY: dict[type[meta.Object], Callable[[Any], meta.Object]] = {
    v1beta1.ResourceClaim: _claim_to_memory,
    v1beta1.ResourceClaimTemplate: _template_to_memory,
    v1beta1.ResourceSlice: _slice_to_memory,
    v1alpha3.ResourceSlice: _v1alpha3_slice_to_memory,
}
_TO_WIRE: dict[type[meta.Object], Callable[[Any], meta.Object]] = {
    v1beta1.ResourceClaim: _claim_to_v1beta1,
    v1beta1.ResourceClaimTemplate: _template_to_v1beta1,
    v1beta1.ResourceSlice: _slice_to_v1beta1,
    v1alpha3.ResourceSlice: _slice_to_v1alpha3,
}
