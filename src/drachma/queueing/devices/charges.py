"""Charges for the consumption of devices: counters of partitionable devices, capacity of shared devices.

The charge is for the worst device that a request could get: the largest amount among matching devices times the count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from drachma.api import resourceclaim, resourceslice
from drachma.queueing import amounts, resourcelists
from drachma.queueing.configuration.configuration import CapacitySource, CounterSource
from drachma.queueing.devices.counting import ALL, claim_path, is_admin, template_spec
from drachma.queueing.devices.mappings import CounterCharge, DeviceMappings
from drachma.queueing.devices.objects import DeviceObjects
from drachma.queueing.devices.selectors import Problem, Programs, compile_all, compile_class, matching
from drachma.queueing.kinds import workload
from drachma.validation import fielderror
from drachma.validation.path import Path
from drachma.values import quantity, quotation

_ZERO = quantity.Quantity.parse("0")


class _ClassRequest(msgspec.Struct, frozen=True):
    """A request of one of a pod set's templates, with its compiled selectors."""

    pod_set: str
    request: resourceclaim.ExactDeviceRequest
    at: Path
    device_class: Programs
    selectors: Programs


def counter_charges(wl: workload.Workload, objects: DeviceObjects, mappings: DeviceMappings) -> resourcelists.PerPodSet:
    """Return the counter consumption of one pod of each pod set. Raises Problem if it cannot be determined."""
    charges: dict[str, dict[str, quantity.Quantity]] = {}
    for request in _requests(wl, objects, frozenset(mappings.counters)):
        for charge in mappings.counters[request.request.device_class_name]:
            source = charge.source
            matched = _matching(request, objects, source=source, measure="counter")
            amount = counter_charge(charge, matched, request.request.count or 0)
            if amount is None:
                detail = f"matched devices have no consumesCounters entry for counter {quotation.quote(source.name)}"
                raise Problem([fielderror.internal(request.at, detail)])
            _add(charges, request.pod_set, charge.resource, amount)
    return charges


def capacity_charges(
    wl: workload.Workload, objects: DeviceObjects, mappings: DeviceMappings
) -> resourcelists.PerPodSet:
    """Return the capacity consumption of one pod of each pod set. Raises Problem if it cannot be determined."""
    charges: dict[str, dict[str, quantity.Quantity]] = {}
    for request in _requests(wl, objects, frozenset(mappings.capacities)):
        name = request.request.device_class_name
        for source in mappings.capacities[name]:
            matched = _matching(request, objects, source=source, measure="capacity")
            explicit = (
                request.request.capacity.requests.get(source.name) if request.request.capacity is not None else None
            )
            amount = capacity_charge(source, matched, request.request.count or 0, explicit=explicit, at=request.at)
            _add(charges, request.pod_set, mappings.resources[name], amount)
    return charges


def counter_charge(
    charge: CounterCharge, matched: Sequence[resourceslice.Device], count: int
) -> quantity.Quantity | None:
    """Return the largest value of the counter times the count, or None if no device consumes it."""
    consumed = [
        counter.value or _ZERO
        for device in matched
        for consumption in device.consumes_counters
        for name, counter in consumption.counters.items()
        if name == charge.source.name
    ]
    return _times(max(consumed), count) if consumed else None


def capacity_charge(
    source: CapacitySource,
    matched: Sequence[resourceslice.Device],
    count: int,
    *,
    explicit: quantity.Quantity | None,
    at: Path,
) -> quantity.Quantity:
    """Return the largest charge of a device times the count. Devices whose policy refuses the amount are left out."""
    quoted = quotation.quote(source.name)
    capacities = [device.capacity[source.name] for device in matched if source.name in device.capacity]
    if not capacities:
        raise Problem([fielderror.internal(at, f"matched devices have no capacity dimension {quoted}")])
    charges: list[quantity.Quantity] = []
    for capacity in capacities:
        policy = capacity.request_policy
        base = explicit
        if base is None:
            base = policy.default if policy is not None and policy.default is not None else capacity.value or _ZERO
        try:
            charges.append(rounded(base, policy))
        except ValueError:
            continue
    if not charges:
        detail = f"capacity request cannot be satisfied by any matched device's RequestPolicy for dimension {quoted}"
        raise Problem([fielderror.invalid(at, None, detail)])
    return _times(max(charges), count)


def rounded(base: quantity.Quantity, policy: resourceslice.CapacityRequestPolicy | None) -> quantity.Quantity:
    """Return the amount to which a policy rounds a request. Raises ValueError if it allows no amount as large."""
    if policy is None:
        return base
    if policy.valid_values:
        for value in policy.valid_values:
            if value >= base:
                return value
        raise ValueError(f"request {base} exceeds all valid values")
    if policy.valid_range is not None:
        return _round_to_range(base, policy.valid_range)
    return base


def _round_to_range(base: quantity.Quantity, limits: resourceslice.CapacityRequestPolicyRange) -> quantity.Quantity:
    value = amounts.requested("", base)
    if limits.min is not None:
        least = amounts.requested("", limits.min)
        value = max(value, least)
        step = amounts.requested("", limits.step) if limits.step is not None else 0
        offset = amounts.clamp(value - least)
        if step > 0 and offset % step:
            value = amounts.clamp(least + amounts.clamp((offset // step + 1) * step))
    if limits.max is not None and value > (most := amounts.requested("", limits.max)):
        raise ValueError(f"rounded value {value} exceeds max {most}")
    return quantity.Quantity.from_int(value, format=base.format)


def _times(amount: quantity.Quantity, count: int) -> quantity.Quantity:
    """Return a charge for a number of devices; negative amounts of a driver count for nothing."""
    value = max(amounts.requested("", amount), 0)
    return quantity.Quantity.from_int(amounts.clamp(value * count) if count > 1 else value, format=amount.format)


def _requests(wl: workload.Workload, objects: DeviceObjects, classes: frozenset[str]) -> Iterator[_ClassRequest]:
    """Yield the requests for devices of some classes, in order."""
    for index, pod_set in enumerate(wl.spec.pod_sets):
        for position, reference in enumerate(pod_set.template.spec.resource_claims):
            name = reference.resource_claim_template_name
            if name is None:
                continue
            claim = claim_path(index, position)
            context = f"failed to get claim spec for ResourceClaimTemplate {name}"
            spec = template_spec(name, wl.metadata.namespace, objects, at=claim, context=context)
            for number, request in enumerate(spec.devices.requests):
                exactly = request.exactly
                if exactly is None or is_admin(exactly) or exactly.device_class_name not in classes:
                    continue
                if exactly.allocation_mode == ALL:
                    continue  # bounds.py charges it, if the policy says so
                at = claim.child("devices", "requests").item(number)
                device_class = compile_class(exactly.device_class_name, objects, at)
                here = at.child("exactly", "selectors")
                selectors, problems = compile_all(exactly.selectors, here, context="CEL compilation failed")
                if problems:
                    raise Problem(problems)
                yield _ClassRequest(pod_set.name, exactly, at, device_class, selectors)


def _matching(
    request: _ClassRequest, objects: DeviceObjects, *, source: CounterSource | CapacitySource, measure: str
) -> list[resourceslice.Device]:
    matched = matching(
        objects,
        source.driver,
        source=source.device_selector,
        device_class=request.device_class,
        request=request.selectors,
        at=request.at,
    )
    needed = request.request.count or 0
    if len(matched) < needed:
        detail = (
            f"insufficient matching devices for {measure} driver: {len(matched)} device(s) match but {needed} requested"
        )
        raise Problem([fielderror.internal(request.at, detail)])
    return matched


def _add(
    charges: dict[str, dict[str, quantity.Quantity]], pod_set: str, resource: str, amount: quantity.Quantity
) -> None:
    of_set = charges.setdefault(pod_set, {})
    of_set[resource] = of_set.get(resource, _ZERO) + amount
