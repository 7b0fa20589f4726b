"""Charge of one device: before its allocation, for the upper bound of a request, and afterwards, for settlement.

A device counts as the mappings of its class say: as one, by a counter or by a capacity. If the policy charges it, a
device also counts for the cpu, memory and huge pages that it provides and needs on its node (KEP-5517).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from drachma import cel, errors
from drachma.accounting import footprint
from drachma.accounting import requests as podrequests
from drachma.allocator import capacity
from drachma.api import devices, nodeallocatable, pod, resourceclaim
from drachma.queueing import resourcelists
from drachma.queueing.configuration.gates import DEFAULT, Gate, Gates
from drachma.queueing.configuration.queueingpolicy import AS_KUEUE, NodeAllocatable, QueueingPolicy
from drachma.queueing.devices import charges as devicecharges
from drachma.queueing.devices import selecteddevices
from drachma.queueing.devices.mappings import NO_MAPPINGS, DeviceMappings
from drachma.queueing.devices.objects import Located
from drachma.queueing.devices.selectors import Problem, cel_device, compile_all
from drachma.validation import fielderror
from drachma.validation.path import Path
from drachma.values import quantity

Consumed = Mapping[str, quantity.Quantity]
"""Consumption of a device's capacities by one share of it."""

_ONE = quantity.Quantity.from_int(1)
_ZERO = quantity.Quantity.from_int(0)


class Measure(msgspec.Struct, frozen=True):
    """Rules by which devices are charged."""

    mappings: DeviceMappings = NO_MAPPINGS
    gates: Gates = DEFAULT
    policy: QueueingPolicy = AS_KUEUE

    @property
    def charges_nodes(self) -> bool:
        """True if the resources that devices need on their nodes are charged."""
        return self.policy.node_allocatable is NodeAllocatable.CHARGED

    def quota(
        self, device_class: str, device: Located, consumed: Consumed, *, at: Path
    ) -> dict[str, quantity.Quantity]:
        """Return the charge of a device of a mapped class. Raises Problem if a selector of quota fails."""
        charges = selecteddevices.charge(self.policy, device_class, device, at=at)
        if not self.mappings.is_by_source(device_class, self.gates):
            return {self.mappings.resources[device_class]: _ONE, **charges}
        if self.gates.on(Gate.DRA_PARTITIONABLE_DEVICES):
            for charge in self.mappings.counters.get(device_class, ()):
                source = charge.source
                if _matches_source(source.driver, source.device_selector, device, at=at):
                    _add(charges, charge.resource, devicecharges.counter_charge(charge, (device.device,), 1) or _ZERO)
        if self.gates.on(Gate.DRA_CONSUMABLE_CAPACITY):
            for by_capacity in self.mappings.capacities.get(device_class, ()):
                full_capacity = device.device.capacity.get(by_capacity.name)
                if full_capacity is not None and _matches_source(
                    by_capacity.driver, by_capacity.device_selector, device, at=at
                ):
                    amount = consumed.get(by_capacity.name) or full_capacity.value or _ZERO
                    _add(charges, self.mappings.resources[device_class], amount)
        return charges

    def node(self, device: Located, consumed: Consumed, *, containers: int) -> dict[str, quantity.Quantity]:
        """Return the resources that a device needs on its node for its containers; none unless that is charged."""
        if not self.charges_nodes or not nodeallocatable.resources_of(device.device):
            return {}
        result = resourceclaim.DeviceRequestAllocationResult(
            driver=device.driver, pool=device.pool, device=device.device.name, consumed_capacity=consumed
        )
        allocation = resourceclaim.AllocationResult(devices=resourceclaim.DeviceAllocationResult(results=(result,)))
        try:
            mark = footprint.of(allocation, lambda _: device.device, claim=device.device.name)
        except errors.AllocationError:
            # The scheduler cannot account for such a device either, and never allocates it.
            return {}
        amounts = dict(mark.mapped)
        for name, (per_pod, per_container) in mark.overhead:
            _add(amounts, name, (per_pod or _ZERO) + (per_container or _ZERO) * containers)
        return amounts


def consumed(device: Located, requirements: resourceclaim.CapacityRequirements | None) -> Consumed | None:
    """Return the consumption of a device's capacities by a request, or None if the device cannot satisfy it."""
    try:
        return capacity.consumption(requirements, device.device.capacity, fractional=False)
    except capacity.CapacityError:
        return None


def beyond_pod(spec: pod.PodSpec, devices_need: pod.ResourceList) -> dict[str, quantity.Quantity]:
    """Return the requests that devices add to those of a pod; none for resources with a request of the whole pod."""
    if not devices_need:
        return {}
    mapping = tuple(
        nodeallocatable.NodeAllocatableMappedResource(name=name, amount=amount) for name, amount in devices_need.items()
    )
    status = nodeallocatable.NodeAllocatableResourceClaimStatus(mapping=mapping)
    alone = podrequests.total(pod.Pod(spec=spec))
    together = podrequests.total(pod.Pod(spec=spec), claims=(status,))
    return {
        name: footprint.to_quantity(together[name] - alone.get(name, 0), amount.format)
        for name, amount in devices_need.items()
        if together[name] > alone.get(name, 0)
    }


def _matches_source(driver: str, selector: devices.DeviceSelector, device: Located, *, at: Path) -> bool:
    if driver != device.driver:
        return False
    programs, problems = compile_all((selector,), at, context="deviceSelector CEL compilation failed")
    if problems:
        raise Problem(problems)
    try:
        return programs.matches(cel_device(device.device, driver))
    except cel.EvaluationError as error:
        detail = f"CEL evaluation error in deviceSelector for device {device.device.name}: {error}"
        raise Problem([fielderror.internal(at, detail)]) from None


def _add(to: dict[str, quantity.Quantity], name: str, amount: quantity.Quantity) -> None:
    """Add an amount of a driver; negative amounts count for nothing."""
    if amount.sign > 0:
        to[name] = resourcelists.total(to[name], amount) if name in to else amount
