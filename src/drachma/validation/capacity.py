"""Rules for device capacities, above all for which amounts of a shared capacity may be requested."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from drachma.api import gates as feature
from drachma.api import resourceslice
from drachma.validation import collection, fielderror, limits
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.values import notation, quantity

_INT64_MAX: Final = quantity.Quantity.from_int(2**63 - 1)
_ZERO: Final = quantity.Quantity.from_int(0)
_Range = resourceslice.CapacityRequestPolicyRange


def check_exclusive(capacity: resourceslice.DeviceCapacity, at: Path) -> Errors:
    """Yield the errors of a capacity of a device that only one claim can have, so that no part of it is requested."""
    if capacity.request_policy is not None:
        yield fielderror.forbidden(at.child("requestPolicy"), "allowMultipleAllocations must be true")


def check_shared(capacity: resourceslice.DeviceCapacity, at: Path, *, gates: feature.Gates) -> Errors:
    """Yield the errors of a capacity of a device that several claims share."""
    policy = capacity.request_policy
    if policy is None:
        return
    path, is_fractional = at.child("requestPolicy"), gates.on(feature.Gate.FRACTIONAL_CAPACITY_RANGE)
    total = capacity.value if capacity.value is not None else _ZERO
    policy_field = "validValues" if policy.valid_values else "validRange" if policy.valid_range is not None else ""
    if policy.valid_values and policy.valid_range is not None:
        detail = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        yield fielderror.forbidden(path, detail)
    elif policy_field and policy.default is None:
        yield fielderror.required(path.child("default"), f"required when {policy_field} is defined")
    elif policy.valid_values and policy.default is not None:
        place = path.child(policy_field)
        yield from _check_options(policy.valid_values, policy.default, place, total=total, is_fractional=is_fractional)
    elif policy.valid_range is not None and policy.default is not None:
        rules = _RangeRules(policy.valid_range, policy.default, total=total, is_fractional=is_fractional)
        yield from rules.check(path.child(policy_field))


def _check_options(
    options: Sequence[quantity.Quantity],
    default: quantity.Quantity,
    at: Path,
    *,
    total: quantity.Quantity,
    is_fractional: bool,
) -> Errors:
    """Check a list of amounts, one of which is the default."""
    for position, (option, following) in enumerate(itertools.pairwise(options), start=1):
        if option > following:
            yield fielderror.invalid(at.item(position), str(following), "values must be sorted in ascending order")
    if len(options) > limits.CAPACITY_OPTIONS:
        yield fielderror.too_many(at, len(options), limits.CAPACITY_OPTIONS)
        # Too many options are not checked, so that the default is not one of them.
        options = ()
    for position, option in enumerate(options):
        if option > total:
            detail = f"option is larger than capacity value: {total}"
            yield fielderror.invalid(at.item(position), str(option), detail)
    keys = [_decimal(option) if is_fractional else str(option.as_int64()) for option in options]
    for position, key in collection.repetitions(keys):
        yield fielderror.duplicate(at.item(position), key)
    if default not in options:
        yield fielderror.invalid(at, str(default), "default value is not valid according to the requestPolicy")


class _RangeRules:
    """A range from ``min`` to ``max`` in which a default lies, in steps.

    Upstream computes with int64, in thousandths if any bound is a fraction; bounds that this cannot hold are refused.
    """

    def __init__(
        self, bounds: _Range, default: quantity.Quantity, *, total: quantity.Quantity, is_fractional: bool
    ) -> None:
        self._bounds = bounds
        self._default = default
        self._total = total
        amounts = (default, bounds.min, bounds.max, bounds.step)
        self._in_milli = is_fractional and any(_is_fraction(bound) for bound in amounts if bound is not None)

    def check(self, at: Path) -> Errors:
        least = self._bounds.min
        if least is None:
            yield fielderror.required(at.child("min"), "required when validRange is defined")
            return
        yield from self._order(least, at)
        if self._in_milli:
            unsafe = list(self._beyond_milli(at))
            yield from unsafe
            if unsafe:
                return
        step = self._bounds.step
        if step is None:
            return
        if step.sign <= 0:
            yield fielderror.invalid(at.child("step"), str(step), "must be greater than zero")
            return
        first = least + step
        if first > self._total:
            detail = f"one step {first} is larger than capacity value: {self._total}"
            yield fielderror.invalid(at.child("step"), str(step), detail)
        unsafe = [] if self._in_milli else list(self._beyond_int64(at))
        yield from unsafe
        if not unsafe:
            yield from self._multiples(least, step, at.child("step"))

    def _order(self, least: quantity.Quantity, at: Path) -> Errors:
        most, default, total = self._bounds.max, self._default, self._total
        if least > total:
            yield fielderror.invalid(at.child("min"), str(least), f"min is larger than capacity value: {total}")
        if default < least:
            yield fielderror.invalid(at.child("default"), str(default), f"default is less than min: {least}")
        if most is None:
            return
        if least > most:
            yield fielderror.invalid(at.child("max"), str(least), f"min is larger than max: {most}")
        if most > total:
            yield fielderror.invalid(at.child("max"), str(most), f"max is larger than capacity value: {total}")
        if default > most:
            yield fielderror.invalid(at.child("default"), str(default), f"default is more than max: {most}")

    def _bounds_by_name(self) -> Iterator[tuple[str, quantity.Quantity]]:
        yield "default", self._default
        for name in ("min", "max", "step"):
            bound = getattr(self._bounds, name)
            if bound is not None:
                yield name, bound

    def _beyond_milli(self, at: Path) -> Errors:
        for name, bound in self._bounds_by_name():
            if bound != quantity.Quantity.from_milli(bound.milli_value()):
                yield fielderror.invalid(at.child(name), str(bound), "value cannot be represented as a milli value")

    def _beyond_int64(self, at: Path) -> Errors:
        for name, bound in self._bounds_by_name():
            if bound.sign < 0:
                yield fielderror.invalid(at.child(name), str(bound), "must be greater than or equal to 0")
            elif bound > _INT64_MAX:
                yield fielderror.invalid(at.child(name), str(bound), "must not be larger than 9223372036854775807")

    def _multiples(self, least: quantity.Quantity, step: quantity.Quantity, at: Path) -> Errors:
        for bound in (self._default, self._bounds.max):
            if bound is not None and (self._number(bound) - self._number(least)) % self._number(step):
                detail = f"value is not a multiple of a given step ({step}) from ({least})"
                yield fielderror.invalid(at, str(bound), detail)

    def _number(self, bound: quantity.Quantity) -> int:
        return bound.milli_value() if self._in_milli else bound.as_int64()


def _is_fraction(bound: quantity.Quantity) -> bool:
    return bound.nanos % 10**9 != 0


def _decimal(option: quantity.Quantity) -> str:
    """The amount in decimal digits, by which upstream tells options apart: ``1`` and ``1000m`` are two of them."""
    _, scale, *_ = notation.parse(option.text)
    integer, fraction = divmod(abs(option.nanos), 10**9)
    sign = "-" if option.sign < 0 else ""
    digits = f"{fraction:09}"[: -scale if scale < 0 else 0]
    return f"{sign}{integer}.{digits}" if digits else f"{sign}{integer}"
