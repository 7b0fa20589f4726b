"""Defaults and canonical form: what an API server stores of an object it was given.

Upstream defaults on the wire form of each version; on the v1 form the outcome is the same for every object that
passes validation. The time for new taints is passed in.
"""

import functools
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

from msgspec import structs

from drachma.api import devices, devicetaintrule, meta, resourceclaim, resourceclaimtemplate, resourceslice
from drachma.api.struct import Struct, canonical_zero, is_absent
from drachma.values import quantity

EXACT_COUNT: Final = "ExactCount"
ALL: Final = "All"

# Upstream's quantities that are no pointers: absent is zero, and zero is written.
_ALWAYS_QUANTITIES: Final = frozenset({(resourceslice.DeviceCapacity, "value"), (resourceslice.Counter, "value")})
_NO_AMOUNT: Final = quantity.Quantity.parse("0")

_PLAIN: Final = frozenset({str, int, bool, float})
"""Types whose values have one form only."""

_Request = TypeVar("_Request", resourceclaim.ExactDeviceRequest, resourceclaim.DeviceSubRequest)
_ObjectT = TypeVar("_ObjectT", bound=meta.Object)


def apply(given: _ObjectT, *, now: datetime) -> _ObjectT:
    """The object with upstream's defaults filled in; kinds without defaults are returned as they are."""
    defaulted: meta.Object = given
    match given:
        case resourceclaim.ResourceClaim():
            defaulted = structs.replace(given, spec=_claim_spec(given.spec), status=_claim_status(given.status))
        case resourceclaimtemplate.ResourceClaimTemplate():
            spec = structs.replace(given.spec, spec=_claim_spec(given.spec.spec))
            defaulted = structs.replace(given, spec=spec)
        case resourceslice.ResourceSlice():
            defaulted = structs.replace(given, spec=_slice_spec(given.spec, now))
        case devicetaintrule.DeviceTaintRule():
            taint = _taint(given.spec.taint, now)
            defaulted = structs.replace(given, spec=structs.replace(given.spec, taint=taint))
    return defaulted  # type: ignore[return-value]


def canonical(given: _ObjectT) -> _ObjectT:
    """The object as upstream writes it: quantities in canonical form, empty optional fields left out."""
    canonical_form: _ObjectT = _canonical_struct(given)
    return canonical_form


def _claim_spec(spec: resourceclaim.ResourceClaimSpec) -> resourceclaim.ResourceClaimSpec:
    if not spec.devices.requests:
        return spec
    requests = tuple(
        structs.replace(
            request,
            exactly=_request(request.exactly) if request.exactly else None,
            first_available=_each(request.first_available, _request),
        )
        for request in spec.devices.requests
    )
    return structs.replace(spec, devices=structs.replace(spec.devices, requests=requests))


def _claim_status(status: resourceclaim.ResourceClaimStatus) -> resourceclaim.ResourceClaimStatus:
    if status.allocation is None or not status.allocation.devices.results:
        return status
    results = tuple(
        structs.replace(result, tolerations=_each(result.tolerations, _toleration))
        for result in status.allocation.devices.results
    )
    devices = structs.replace(status.allocation.devices, results=results)
    return structs.replace(status, allocation=structs.replace(status.allocation, devices=devices))


def _request(request: _Request) -> _Request:
    mode = request.allocation_mode or EXACT_COUNT
    count = 1 if mode == EXACT_COUNT and not request.count else request.count
    tolerations = _each(request.tolerations, _toleration)
    return structs.replace(request, allocation_mode=mode, count=count, tolerations=tolerations)


def _toleration(toleration: devices.DeviceToleration) -> devices.DeviceToleration:
    return toleration if toleration.operator else structs.replace(toleration, operator="Equal")


def _slice_spec(spec: resourceslice.ResourceSliceSpec, now: datetime) -> resourceslice.ResourceSliceSpec:
    if not any(device.taints for device in spec.devices):
        return spec
    tainted = tuple(
        structs.replace(device, taints=_each(device.taints, lambda taint: _taint(taint, now)))
        for device in spec.devices
    )
    return structs.replace(spec, devices=tainted)


def _taint(taint: devices.DeviceTaint, now: datetime) -> devices.DeviceTaint:
    if taint.time_added is not None:
        return taint
    return structs.replace(taint, time_added=now.replace(microsecond=0))


def _each(items: tuple[Any, ...], change: Any) -> tuple[Any, ...]:
    return items if not items else tuple(change(item) for item in items)


def _canonical_struct(given: Any) -> Any:
    changed = {}
    for name, zero, is_written in _plan(given.__class__):
        value = getattr(given, name)
        if not value and zero is not None:
            current = zero
        elif type(value) in _PLAIN:
            continue
        else:
            current = _canonical_value(value)
        if current is None and is_written:
            current = _NO_AMOUNT
        if current is not value:
            changed[name] = current
    return structs.replace(given, **changed) if changed else given


@functools.cache
def _plan(model: type[Struct]) -> tuple[tuple[str, Any, bool], ...]:
    """The fields of a struct: their names, what a zero becomes (None: what it is), and whether there must be one."""
    return tuple(
        (
            name,
            canonical_zero(default) if default is not None and is_absent(default) else None,
            (model, name) in _ALWAYS_QUANTITIES,
        )
        for name, default in zip(model.__struct_fields__, model.__struct_defaults__, strict=True)
    )


def _canonical_value(value: Any) -> Any:
    if isinstance(value, Struct):
        return _canonical_struct(value)
    if isinstance(value, quantity.Quantity):
        return value if value.text == str(value) else quantity.Quantity.parse(str(value))
    if isinstance(value, tuple):
        items = tuple(_canonical_value(item) for item in value)
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    if isinstance(value, Mapping) and any(isinstance(item, Struct | quantity.Quantity) for item in value.values()):
        return {key: _canonical_value(item) for key, item in value.items()}
    return value
