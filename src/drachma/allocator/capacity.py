"""Consumable capacity: the amounts that a request takes of a device's capacities, within the device's policy.

Called when devices are screened for a request, and again for the allocation result. What a request takes is its own
amount rounded up to what the policy allows, or the policy's default, or all of it (KEP-5075). "Does not suit this
device" is an answer; :class:`CapacityError` is for amounts that make no sense on any device, and ends the allocation.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from drachma import errors
from drachma.api import resourceclaim, resourceslice
from drachma.values import quantity, quotation

_INT64_MAX: Final = 2**63 - 1
_MILLI: Final = 10**6
_UNREPRESENTABLE: Final = "capacity request cannot be represented in the device's range arithmetic"
_ZERO: Final = quantity.Quantity.from_int(0)

Amounts = Mapping[str, quantity.Quantity]


class CapacityError(errors.AllocationError):
    """An amount cannot be computed with, or is negative; the message starts with the capacity's name."""


def consumption(
    requirements: resourceclaim.CapacityRequirements | None,
    capacities: Mapping[str, resourceslice.DeviceCapacity],
    *,
    fractional: bool,
) -> dict[str, quantity.Quantity] | None:
    """Return the amount that the request consumes of each capacity, ordered by name.

    None: the device does not have a capacity asked for, or its policy does not allow the amount. Whether there is
    that much left is another question. All amounts are computed before any policy is looked at, so that an error does
    not depend on the order of names.
    """
    requests: Amounts = requirements.requests if requirements is not None else {}
    if any(name not in capacities for name in requests):
        return None
    consumed: dict[str, quantity.Quantity] = {}
    for name in sorted(capacities):
        try:
            amount = _consumed(requests.get(name), capacities[name], fractional=fractional)
        except CapacityError as error:
            raise CapacityError(f"capacity {quotation.quote(name)}: {error}") from None
        if amount.nanos < 0:
            raise CapacityError(f"capacity {quotation.quote(name)}: capacity value is negative")
        consumed[name] = amount
    if any(
        _violates(amount, capacities[name].request_policy, fractional=fractional) for name, amount in consumed.items()
    ):
        return None
    return consumed


def canonical(amounts: Amounts) -> dict[str, quantity.Quantity]:
    """Return the amounts spelled as in allocation results, which is as computed quantities are."""
    return {name: amount * 1 for name, amount in amounts.items()}


def value_of(capacity: resourceslice.DeviceCapacity) -> quantity.Quantity:
    """Return the total of a capacity; an absent value is zero."""
    return _ZERO if capacity.value is None else capacity.value


def consumed_share(device: resourceslice.Device, consumed: Mapping[str, quantity.Quantity]) -> Fraction:
    """Return the largest consumed share of any capacity of a device."""
    shares = [
        Fraction(amount.nanos, total.nanos)
        for name, amount in consumed.items()
        if name in device.capacity and (total := value_of(device.capacity[name])).nanos
    ]
    return max(shares, default=Fraction(0))


def _consumed(
    request: quantity.Quantity | None, capacity: resourceslice.DeviceCapacity, *, fractional: bool
) -> quantity.Quantity:
    policy = capacity.request_policy
    if request is None:
        return value_of(capacity) if policy is None or policy.default is None else policy.default
    if policy is None:
        return request
    if policy.valid_range is not None and policy.valid_range.min is not None:
        if request < policy.valid_range.min:
            # Differs from upstream: a default below the minimum, which no API server accepts, stays what it is.
            return request if _is_default(request, policy) else policy.valid_range.min
        return _round_up(request, policy.valid_range, least=policy.valid_range.min, fractional=fractional)
    return next((value for value in policy.valid_values if request <= value), request)


def _round_up(
    request: quantity.Quantity,
    valid_range: resourceslice.CapacityRequestPolicyRange,
    *,
    least: quantity.Quantity,
    fractional: bool,
) -> quantity.Quantity:
    """Return the least valid amount that is not below the request. Upstream computes in int64."""
    step = valid_range.step
    if step is None:
        return request
    if _uses_milli(valid_range, fractional=fractional):
        if not _is_milli(request):
            raise CapacityError(f"{_UNREPRESENTABLE}: request {request} is not a representable milli value")
        milli = _next_step(request.milli_value(), start=least.milli_value(), step=step.milli_value())
        if milli > _INT64_MAX:
            raise CapacityError(
                f"{_UNREPRESENTABLE}: rounding request {request} up to the next step passes the milli-value range"
            )
        if milli % 1000 == 0:
            return quantity.Quantity.from_int(milli // 1000, format=step.format)
        return quantity.Quantity.from_milli(milli, format=step.format)
    if request.nanos > _INT64_MAX * 10**9:
        raise CapacityError(f"{_UNREPRESENTABLE}: request {request} exceeds MaxInt64")
    start = least.as_int64()
    rounded = _next_step(request.as_int64(), start=start, step=step.as_int64())
    if start >= 0 and rounded > _INT64_MAX:
        raise CapacityError(f"{_UNREPRESENTABLE}: rounding request {request} up to the next step passes MaxInt64")
    return quantity.Quantity.from_int(rounded, format=step.format)


def _next_step(amount: int, *, start: int, step: int) -> int:
    # A step of zero is refused when a slice is published; here it means any amount will do.
    return start + -(-(amount - start) // step) * step if step else amount


def _violates(
    amount: quantity.Quantity, policy: resourceslice.CapacityRequestPolicy | None, *, fractional: bool
) -> bool:
    if policy is None or _is_default(amount, policy):
        return False
    if policy.valid_range is not None:
        return _outside(amount, policy.valid_range, fractional=fractional)
    return bool(policy.valid_values) and amount not in policy.valid_values


def _is_default(amount: quantity.Quantity, policy: resourceslice.CapacityRequestPolicy) -> bool:
    """Return True if the amount is the default in the same format, which is always valid."""
    return policy.default is not None and amount == policy.default and amount.format is policy.default.format


def _outside(
    amount: quantity.Quantity, valid_range: resourceslice.CapacityRequestPolicyRange, *, fractional: bool
) -> bool:
    if valid_range.max is not None and amount > valid_range.max:
        return True
    if valid_range.step is None:
        return False
    least = _ZERO if valid_range.min is None else valid_range.min
    if _uses_milli(valid_range, fractional=fractional):
        return not _is_milli(amount) or _off_step(
            amount.milli_value() - least.milli_value(), step=valid_range.step.milli_value()
        )
    return _off_step(amount.as_int64() - least.as_int64(), step=valid_range.step.as_int64())


def _off_step(distance: int, *, step: int) -> bool:
    return step != 0 and distance % step != 0


def _uses_milli(valid_range: resourceslice.CapacityRequestPolicyRange, *, fractional: bool) -> bool:
    """Return True if the range is computed in thousandths: the feature is on and all bounds are such."""
    bounds = (valid_range.min, valid_range.max, valid_range.step)
    if not fractional or any(bound is not None and not _is_milli(bound) for bound in bounds):
        return False
    return valid_range.step is None or valid_range.step.milli_value() >= 1


def _is_milli(amount: quantity.Quantity) -> bool:
    return amount.milli_value() * _MILLI == amount.nanos
