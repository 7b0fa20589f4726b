"""Consumable capacity: how much of a device's capacities a request takes, and whether its policy allows that.

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
    wanted: resourceclaim.CapacityRequirements | None,
    capacities: Mapping[str, resourceslice.DeviceCapacity],
    *,
    fractional: bool,
) -> dict[str, quantity.Quantity] | None:
    """What the request takes of each capacity, in the order of their names.

    None: the device does not have a capacity asked for, or its policy does not allow the amount. Whether there is
    that much left is another question. All amounts are computed before any policy is looked at, so that an error does
    not depend on the order of names.
    """
    requests: Amounts = wanted.requests if wanted is not None else {}
    if any(name not in capacities for name in requests):
        return None
    taken: dict[str, quantity.Quantity] = {}
    for name in sorted(capacities):
        try:
            amount = _consumed(requests.get(name), capacities[name], fractional=fractional)
        except CapacityError as error:
            raise CapacityError(f"capacity {quotation.quote(name)}: {error}") from None
        if amount.nanos < 0:
            raise CapacityError(f"capacity {quotation.quote(name)}: capacity value is negative")
        taken[name] = amount
    if any(_violates(amount, capacities[name].request_policy, fractional=fractional) for name, amount in taken.items()):
        return None
    return taken


def canonical(amounts: Amounts) -> dict[str, quantity.Quantity]:
    """The same amounts in the spelling that allocation results have, which is that of a computed quantity."""
    return {name: amount * 1 for name, amount in amounts.items()}


def value_of(capacity: resourceslice.DeviceCapacity) -> quantity.Quantity:
    """How much there is; an absent value is zero."""
    return _ZERO if capacity.value is None else capacity.value


def consumed_share(device: resourceslice.Device, consumed: Mapping[str, quantity.Quantity]) -> Fraction:
    """How far the capacities of a device are consumed: the largest share of any."""
    shares = [
        Fraction(amount.nanos, whole.nanos)
        for name, amount in consumed.items()
        if name in device.capacity and (whole := value_of(device.capacity[name])).nanos
    ]
    return max(shares, default=Fraction(0))


def _consumed(
    wanted: quantity.Quantity | None, capacity: resourceslice.DeviceCapacity, *, fractional: bool
) -> quantity.Quantity:
    policy = capacity.request_policy
    if wanted is None:
        return value_of(capacity) if policy is None or policy.default is None else policy.default
    if policy is None:
        return wanted
    if policy.valid_range is not None and policy.valid_range.min is not None:
        if wanted < policy.valid_range.min:
            # Differs from upstream: a default below the minimum, which no API server accepts, stays what it is.
            return wanted if _is_default(wanted, policy) else policy.valid_range.min
        return _round_up(wanted, policy.valid_range, least=policy.valid_range.min, fractional=fractional)
    return next((value for value in policy.valid_values if wanted <= value), wanted)


def _round_up(
    wanted: quantity.Quantity,
    allowed: resourceslice.CapacityRequestPolicyRange,
    *,
    least: quantity.Quantity,
    fractional: bool,
) -> quantity.Quantity:
    """The least amount of the range that is not below ``wanted``; upstream's arithmetic is in int64."""
    step = allowed.step
    if step is None:
        return wanted
    if _in_milli(allowed, fractional=fractional):
        if not _is_milli(wanted):
            raise CapacityError(f"{_UNREPRESENTABLE}: request {wanted} is not a representable milli value")
        milli = _next_step(wanted.milli_value(), start=least.milli_value(), step=step.milli_value())
        if milli > _INT64_MAX:
            raise CapacityError(
                f"{_UNREPRESENTABLE}: rounding request {wanted} up to the next step passes the milli-value range"
            )
        if milli % 1000 == 0:
            return quantity.Quantity.from_int(milli // 1000, format=step.format)
        return quantity.Quantity.from_milli(milli, format=step.format)
    if wanted.nanos > _INT64_MAX * 10**9:
        raise CapacityError(f"{_UNREPRESENTABLE}: request {wanted} exceeds MaxInt64")
    start = least.as_int64()
    whole = _next_step(wanted.as_int64(), start=start, step=step.as_int64())
    if start >= 0 and whole > _INT64_MAX:
        raise CapacityError(f"{_UNREPRESENTABLE}: rounding request {wanted} up to the next step passes MaxInt64")
    return quantity.Quantity.from_int(whole, format=step.format)


def _next_step(wanted: int, *, start: int, step: int) -> int:
    # A step of zero is refused when a slice is published; here it means any amount will do.
    return start + -(-(wanted - start) // step) * step if step else wanted


def _violates(
    amount: quantity.Quantity, policy: resourceslice.CapacityRequestPolicy | None, *, fractional: bool
) -> bool:
    if policy is None or _is_default(amount, policy):
        return False
    if policy.valid_range is not None:
        return _outside(amount, policy.valid_range, fractional=fractional)
    return bool(policy.valid_values) and amount not in policy.valid_values


def _is_default(amount: quantity.Quantity, policy: resourceslice.CapacityRequestPolicy) -> bool:
    """Whether it is the default, in the same format too; that is always allowed."""
    return policy.default is not None and amount == policy.default and amount.format is policy.default.format


def _outside(amount: quantity.Quantity, allowed: resourceslice.CapacityRequestPolicyRange, *, fractional: bool) -> bool:
    if allowed.max is not None and amount > allowed.max:
        return True
    if allowed.step is None:
        return False
    least = _ZERO if allowed.min is None else allowed.min
    if _in_milli(allowed, fractional=fractional):
        return not _is_milli(amount) or _off_step(
            amount.milli_value() - least.milli_value(), step=allowed.step.milli_value()
        )
    return _off_step(amount.as_int64() - least.as_int64(), step=allowed.step.as_int64())


def _off_step(distance: int, *, step: int) -> bool:
    return step != 0 and distance % step != 0


def _in_milli(allowed: resourceslice.CapacityRequestPolicyRange, *, fractional: bool) -> bool:
    """Whether the range is computed in thousandths: the feature is on, and all its bounds are whole thousandths."""
    bounds = (allowed.min, allowed.max, allowed.step)
    if not fractional or any(bound is not None and not _is_milli(bound) for bound in bounds):
        return False
    return allowed.step is None or allowed.step.milli_value() >= 1


def _is_milli(amount: quantity.Quantity) -> bool:
    return amount.milli_value() * _MILLI == amount.nanos
