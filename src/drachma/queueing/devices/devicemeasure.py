"""What one device counts for: before it is allocated, to bound what a request may take, and afterwards, to settle it.

A device of a class counts as the mappings say: as one, by a counter or by a capacity. Where the policy charges it, a
device also counts for the cpu, memory and huge pages that it stands for and that it needs beside itself (KEP-5517).
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
from drachma.queueing.devices import devicecharges
from drachma.queueing.devices.devicemappings import NO_MAPPINGS, DeviceMappings
from drachma.queueing.devices.deviceobjects import Located
from drachma.queueing.devices.deviceselectors import Problem, as_selected, compile_all
from drachma.validation import fielderror
from drachma.validation.path import Path
from drachma.values import quantity

Consumed = Mapping[str, quantity.Quantity]
"""How much of its capacities a share of a device takes."""

_ONE = quantity.Quantity.from_int(1)
_ZERO = quantity.Quantity.from_int(0)


class Measure(msgspec.Struct, frozen=True):
    """By what devices are measured."""

    mappings: DeviceMappings = NO_MAPPINGS
    gates: Gates = DEFAULT
    policy: QueueingPolicy = AS_KUEUE

    @property
    def charges_nodes(self) -> bool:
        """Whether what devices mean for their nodes is charged."""
        return self.policy.node_allocatable is NodeAllocatable.CHARGED

    def quota(self, device_class: str, of: Located, consumed: Consumed, *, at: Path) -> dict[str, quantity.Quantity]:
        """What a device of a mapped class is charged with; a Problem where a source's selector fails."""
        if not self.mappings.is_by_source(device_class, self.gates):
            return {self.mappings.resources[device_class]: _ONE}
        charges: dict[str, quantity.Quantity] = {}
        if self.gates.on(Gate.DRA_PARTITIONABLE_DEVICES):
            for charge in self.mappings.counters.get(device_class, ()):
                source = charge.source
                if _chooses(source.driver, source.device_selector, of, at=at):
                    _add(charges, charge.resource, devicecharges.counter_charge(charge, (of.device,), 1) or _ZERO)
        if self.gates.on(Gate.DRA_CONSUMABLE_CAPACITY):
            for by_capacity in self.mappings.capacities.get(device_class, ()):
                whole = of.device.capacity.get(by_capacity.name)
                if whole is not None and _chooses(by_capacity.driver, by_capacity.device_selector, of, at=at):
                    amount = consumed.get(by_capacity.name) or whole.value or _ZERO
                    _add(charges, self.mappings.resources[device_class], amount)
        return charges

    def node(self, of: Located, consumed: Consumed, *, containers: int) -> dict[str, quantity.Quantity]:
        """What a device that so many containers use means for its node; nothing unless that is charged."""
        if not self.charges_nodes or not nodeallocatable.resources_of(of.device):
            return {}
        result = resourceclaim.DeviceRequestAllocationResult(
            driver=of.driver, pool=of.pool, device=of.device.name, consumed_capacity=consumed
        )
        allocation = resourceclaim.AllocationResult(devices=resourceclaim.DeviceAllocationResult(results=(result,)))
        try:
            mark = footprint.of(allocation, lambda _: of.device, claim=of.device.name)
        except errors.AllocationError:
            # The scheduler cannot account for such a device either, and gives it to nobody.
            return {}
        amounts = dict(mark.mapped)
        for name, (per_pod, per_container) in mark.overhead:
            _add(amounts, name, (per_pod or _ZERO) + (per_container or _ZERO) * containers)
        return amounts


def consumed(of: Located, wanted: resourceclaim.CapacityRequirements | None) -> Consumed | None:
    """What a request would take of a device's capacities; None if it cannot have the device."""
    try:
        return capacity.consumption(wanted, of.device.capacity, fractional=False)
    except capacity.CapacityError:
        return None


def beyond_pod(spec: pod.PodSpec, devices_need: pod.ResourceList) -> dict[str, quantity.Quantity]:
    """What devices add to the requests of a pod: nothing where the pod states the resource as a whole."""
    if not devices_need:
        return {}
    mapping = tuple(
        nodeallocatable.NodeAllocatableMappedResource(name=name, amount=amount) for name, amount in devices_need.items()
    )
    status = nodeallocatable.NodeAllocatableResourceClaimStatus(mapping=mapping)
    alone = podrequests.total(pod.Pod(spec=spec))
    together = podrequests.total(pod.Pod(spec=spec), claims=(status,))
    return {
        name: footprint.spelled(together[name] - alone.get(name, 0), amount.format)
        for name, amount in devices_need.items()
        if together[name] > alone.get(name, 0)
    }


def _chooses(driver: str, selector: devices.DeviceSelector, of: Located, *, at: Path) -> bool:
    if driver != of.driver:
        return False
    programs, problems = compile_all((selector,), at, context="deviceSelector CEL compilation failed")
    if problems:
        raise Problem(problems)
    try:
        return programs.matches(as_selected(of.device, driver))
    except cel.EvaluationError as error:
        detail = f"CEL evaluation error in deviceSelector for device {of.device.name}: {error}"
        raise Problem([fielderror.internal(at, detail)]) from None


def _add(to: dict[str, quantity.Quantity], name: str, amount: quantity.Quantity) -> None:
    """Adds what a driver publishes; below zero it counts for nothing."""
    if amount.sign > 0:
        to[name] = resourcelists.total(to[name], amount) if name in to else amount
