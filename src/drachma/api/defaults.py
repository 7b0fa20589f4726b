"""Defaults and canonical form of objects, as an API server stores them.

Upstream sets defaults on the wire form of each version. On the v1 form the result is the same for every valid object.
The time of new taints is an argument.
"""

import functools
import operator
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import inspect, structs

from drachma.api import devices, devicetaintrule, meta, resourceclaim, resourceclaimtemplate, resourceslice
from drachma.api.struct import Struct, canonical_zero, is_absent
from drachma.api.v1alpha2 import resourceclaim as alpha_claim
from drachma.api.v1alpha2 import resourceclaimtemplate as alpha_template
from drachma.values import quantity

EXACT_COUNT: Final = "ExactCount"
ALL: Final = "All"

# Quantities that are not pointers upstream: absent means zero, and zero is written.
_ALWAYS_QUANTITIES: Final = frozenset({(resourceslice.DeviceCapacity, "value"), (resourceslice.Counter, "value")})
_NO_AMOUNT: Final = quantity.Quantity.parse("0")

_Form: TypeAlias = Callable[[Any], Any]
_Step: TypeAlias = tuple[str, Any, Any, _Form | None]
"""A field that may change: name, default, replacement of zero and absent values, and form of other values.

A field whose default is None has no zero, so its values stay.
"""
_Request = TypeVar("_Request", resourceclaim.ExactDeviceRequest, resourceclaim.DeviceSubRequest)
_ObjectT = TypeVar("_ObjectT", bound=meta.Object)
_StructT = TypeVar("_StructT", bound=Struct)


def apply(api_object: _ObjectT, *, now: datetime) -> _ObjectT:
    """Return the object with upstream's defaults."""
    defaulted: meta.Object = api_object
    match api_object:
        case resourceclaim.ResourceClaim():
            defaulted = structs.replace(
                api_object, spec=_claim_spec(api_object.spec), status=_claim_status(api_object.status)
            )
        case resourceclaimtemplate.ResourceClaimTemplate():
            template = structs.replace(api_object.spec, spec=_claim_spec(api_object.spec.spec))
            defaulted = structs.replace(api_object, spec=template)
        case resourceslice.ResourceSlice():
            defaulted = structs.replace(api_object, spec=_slice_spec(api_object.spec, now))
        case devicetaintrule.DeviceTaintRule():
            taint = _taint(api_object.spec.taint, now)
            defaulted = structs.replace(api_object, spec=structs.replace(api_object.spec, taint=taint))
        case alpha_claim.ResourceClaim():
            defaulted = structs.replace(api_object, spec=_alpha_spec(api_object.spec))
        case alpha_template.ResourceClaimTemplate():
            alpha_spec = structs.replace(api_object.spec, spec=_alpha_spec(api_object.spec.spec))
            defaulted = structs.replace(api_object, spec=alpha_spec)
    return defaulted  # type: ignore[return-value]


def canonical(struct: _StructT) -> _StructT:
    """Return an object or a part of one as upstream writes it: canonical quantities, no empty optional fields.

    A value in this form is returned itself.
    """
    canonical_form: _StructT = _canonical_struct(struct)
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


def _alpha_spec(spec: alpha_claim.ResourceClaimSpec) -> alpha_claim.ResourceClaimSpec:
    mode = spec.allocation_mode or alpha_claim.WAIT_FOR_FIRST_CONSUMER
    return structs.replace(spec, allocation_mode=mode)


def _claim_status(status: resourceclaim.ResourceClaimStatus) -> resourceclaim.ResourceClaimStatus:
    if status.allocation is None or not any(result.tolerations for result in status.allocation.devices.results):
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


def _canonical_struct(struct: Any) -> Any:
    changed: dict[str, Any] | None = None
    for step, value in zip(_plan(struct.__class__), structs.astuple(struct), strict=True):
        if step is None:
            continue
        name, default, zero, form = step
        if value is default or (not value and default is not None):
            current = zero
        elif form is None:
            continue
        else:
            current = form(value)
        if current is value:
            continue
        if changed is None:
            changed = {}
        changed[name] = current
    return struct if changed is None else structs.replace(struct, **changed)


@functools.cache
def _plan(model: type[Struct]) -> tuple[_Step | None, ...]:
    """Return a step for each field of a struct; None for fields that never change."""
    plan: list[_Step | None] = []
    for field in structs.fields(model):
        default: Any = field.default
        is_optional = default is None or not is_absent(default)
        zero = default if is_optional else canonical_zero(default)
        if (model, field.name) in _ALWAYS_QUANTITIES:
            zero = _NO_AMOUNT
        form = _form(inspect.type_info(field.type))
        may_change = not is_optional or zero is not default or form is not None
        plan.append((field.name, None if is_optional else default, zero, form) if may_change else None)
    return tuple(plan)


def _form(info: inspect.Type) -> _Form | None:
    """Return the function that makes values of a type canonical; None if all values are."""
    match info:
        case inspect.UnionType(types=types):
            return next((form for form in map(_form, types) if form is not None), None)
        case inspect.StructType():
            return _canonical_struct
        case inspect.CustomType(cls=cls) if cls is quantity.Quantity:
            return _canonical_quantity
        case inspect.VarTupleType(item_type=item):
            form = _form(item)
            return None if form is None else functools.partial(_canonical_items, form)
        case inspect.DictType(value_type=item):
            form = _form(item)
            return None if form is None else functools.partial(_canonical_map, form)
        case _:
            return None


def _canonical_quantity(amount: quantity.Quantity) -> quantity.Quantity:
    return amount if amount.text == str(amount) else quantity.Quantity.parse(str(amount))


def _canonical_items(form: _Form, items: tuple[Any, ...]) -> tuple[Any, ...]:
    canonical_items = tuple(map(form, items))
    return items if all(map(operator.is_, canonical_items, items)) else canonical_items


def _canonical_map(form: _Form, items: Mapping[str, Any]) -> Mapping[str, Any]:
    canonical_items = {key: form(item) for key, item in items.items()}
    return items if all(map(operator.is_, canonical_items.values(), items.values())) else canonical_items
