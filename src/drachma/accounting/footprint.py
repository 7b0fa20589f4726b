"""Footprints: the effect of allocated devices on a node's own resources, such as cpu and memory (KEP-5517).

A device can *be* such a resource (a mapping: an amount per device, or per unit of a consumed capacity) and can *need*
some in addition (overhead, per pod and per container that uses the claim). A claim counts once in a pod, however many
containers use it, even if none does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from drachma import errors
from drachma.accounting import policies, resourcenames
from drachma.api import nodeallocatable, pod, resourceclaim, resourceslice
from drachma.values import quantity

Overhead = tuple[quantity.Quantity | None, quantity.Quantity | None]
"""Overhead per pod, and per container."""

FindDevice = Callable[[resourceclaim.DeviceRequestAllocationResult], resourceslice.Device | None]
"""Function that looks up the device of a result."""

PolicyOf = Callable[[resourceclaim.DeviceRequestAllocationResult, str, str | None], policies.Policy | str]
"""Function that returns the accounting policy of a device's resource, which may state one, or a problem."""


class Footprint(NamedTuple):
    """Footprint of one claim's devices, by resource name in order; empty without an effect. Hashable."""

    mapped: tuple[tuple[str, quantity.Quantity], ...] = ()
    overhead: tuple[tuple[str, Overhead], ...] = ()
    shares: tuple[tuple[str, str, policies.Policy, quantity.Quantity], ...] = ()
    """With accounting policies: driver, resource, policy and amount of each mapping."""
    kep_spelled: frozenset[str] = frozenset()
    """Resources that all devices map in the KEP's spelling, so that the pod's status has it too."""
    problem: str = ""
    """With accounting policies: why this cannot be accounted for."""

    def __bool__(self) -> bool:
        return bool(self.mapped or self.overhead)

    def status(self, claim: str, containers: tuple[str, ...]) -> nodeallocatable.NodeAllocatableResourceClaimStatus:
        """Return the entry of a pod's status."""
        fields: dict[str, object] = {}
        if containers:
            fields["containers"] = containers
        current = [(name, amount) for name, amount in self.mapped if name not in self.kep_spelled]
        if current:
            fields["mapping"] = tuple(
                nodeallocatable.NodeAllocatableMappedResource(name=name, amount=amount) for name, amount in current
            )
        if len(current) < len(self.mapped):
            fields["resources"] = {name: amount for name, amount in self.mapped if name in self.kep_spelled}
        if self.overhead:
            fields["overhead"] = tuple(
                nodeallocatable.NodeAllocatableOverheadResource(name=name, per_pod=per_pod, per_container=per_container)
                for name, (per_pod, per_container) in self.overhead
            )
        return nodeallocatable.NodeAllocatableResourceClaimStatus(resource_claim_name=claim, **fields)  # type: ignore[arg-type]


NOTHING = Footprint()

_NO_CAPACITY: Final = {"": quantity.Quantity.from_int(0)}
"""Consumed capacity of a device without any, which has nothing under any key."""


def of(
    allocation: resourceclaim.AllocationResult,
    find: FindDevice,
    *,
    claim: str,
    policy_of: PolicyOf | None = None,
    falls_back: bool = False,
) -> Footprint:
    """Return the footprint of an allocation. ``claim`` is the claim's label for messages.

    ``falls_back`` counts the device's own capacity if the allocation has no consumed amount of it. Otherwise this
    raises AllocationError if a device maps a capacity and the allocation does not have the consumed amount.
    """
    mapped: dict[str, quantity.Quantity] = {}
    overhead: dict[str, Overhead] = {}
    shares: dict[tuple[str, str, policies.Policy], quantity.Quantity] = {}
    current_spelled: set[str] = set()
    problem = ""
    for result in allocation.devices.results:
        device = find(result)
        if device is None:
            continue
        for name, resource in nodeallocatable.resources_of(device).items():
            if resource.mapping is not None:
                consumed = result.consumed_capacity
                if falls_back and not consumed:
                    consumed = own_capacity(device)
                amount = _mapped(resource.mapping, consumed, claim=claim, device=result.device, resource=name)
                if amount is not None:
                    mapped[name] = mapped[name] + amount if name in mapped else amount
                    if name in device.node_allocatable_resources:
                        current_spelled.add(name)
                    if policy_of is not None:
                        policy = policy_of(result, name, resource.accounting_policy)
                        if isinstance(policy, policies.Policy):
                            key = (result.driver, name, policy)
                            shares[key] = shares[key] + amount if key in shares else amount
                        else:
                            problem = problem or f"claim {claim}, {policy}"
            if resource.overhead is not None:
                _add_overhead(overhead, name, resource.overhead)
    return Footprint(
        tuple(sorted(mapped.items())),
        tuple(sorted(overhead.items())),
        tuple((*key, amount) for key, amount in sorted(shares.items())),
        frozenset(mapped.keys() - current_spelled),
        problem,
    )


def has_mapping(allocation: resourceclaim.AllocationResult, find: FindDevice) -> bool:
    """Return True if an allocated device is a node-allocatable resource, and does not merely need some."""
    for result in allocation.devices.results:
        device = find(result)
        if device is not None and any(
            resource.mapping is not None for resource in nodeallocatable.resources_of(device).values()
        ):
            return True
    return False


def users(of_pod: pod.Pod, entry: str) -> tuple[str, ...]:
    """Return the containers, init containers first, that use a claim by its name in the pod."""
    containers: Iterable[pod.Container] = (*of_pod.spec.init_containers, *of_pod.spec.containers)
    return tuple(
        container.name for container in containers for used in container.resources.claims if used.name == entry
    )


def statuses(
    of_pod: pod.Pod, footprints: Mapping[str, tuple[str, Footprint]]
) -> tuple[nodeallocatable.NodeAllocatableResourceClaimStatus, ...]:
    """Return the entries of a pod's status for footprints by claim name, each with the claim's name in the pod."""
    return tuple(
        footprint.status(claim, users(of_pod, entry) if entry else ())
        for claim, (entry, footprint) in sorted(footprints.items())
        if footprint
    )


def own_capacity(device: resourceslice.Device) -> Mapping[str, quantity.Quantity]:
    """Return the whole capacity of a device, which an exclusive allocation consumes (KEP-5517, partitions)."""
    return {name: capacity.value for name, capacity in device.capacity.items() if capacity.value is not None}


def device_needs(
    device: resourceslice.Device, consumed: Mapping[str, quantity.Quantity], *, containers: int
) -> resourcenames.Nanos:
    """Return the amounts of a node's resources that one device takes, with its overhead for so many containers.

    Without a consumed amount the device's own capacity counts.
    """
    needs: resourcenames.Nanos = {}
    for name, resource in nodeallocatable.resources_of(device).items():
        amounts: list[quantity.Quantity | None] = []
        if resource.mapping is not None:
            capacity = consumed or own_capacity(device) or _NO_CAPACITY
            amounts.append(_mapped(resource.mapping, capacity, claim="", device=device.name, resource=name))
        if resource.overhead is not None:
            amounts += [resource.overhead.per_pod, *[resource.overhead.per_container] * containers]
        needs[name] = sum(amount.nanos for amount in amounts if amount is not None)
    return needs


def _mapped(
    mapping: nodeallocatable.NodeAllocatableMapping,
    consumed_capacity: Mapping[str, quantity.Quantity],
    *,
    claim: str,
    device: str,
    resource: str,
) -> quantity.Quantity | None:
    if not mapping.capacity_key:
        return mapping.device_multiplier
    if not consumed_capacity:
        raise errors.AllocationError(
            f"claim {claim}, device {device}: ConsumedCapacity is nil, but Capacity key "
            f"'{mapping.capacity_key}' is set in NodeAllocatableResources for resource {resource}"
        )
    consumed = consumed_capacity.get(mapping.capacity_key)
    if consumed is None or mapping.capacity_multiplier is None:
        return consumed
    return product(consumed, mapping.capacity_multiplier)


def product(amount: quantity.Quantity, factor: quantity.Quantity) -> quantity.Quantity:
    """Return the product in the format of the first factor, rounded up to billionths."""
    if factor.nanos == 10**9:
        return amount
    nanos = -(-amount.nanos * factor.nanos // 10**9)
    return to_quantity(nanos, amount.format)


def to_quantity(nanos: int, family: quantity.Format) -> quantity.Quantity:
    """Return an exact amount as a quantity."""
    if nanos % 10**6:
        return quantity.Quantity.parse(f"{nanos}n")
    if nanos % 10**9:
        return quantity.Quantity.from_milli(nanos // 10**6, format=family)
    return quantity.Quantity.from_int(nanos // 10**9, format=family)


def _add_overhead(to: dict[str, Overhead], name: str, more: nodeallocatable.NodeAllocatableOverhead) -> None:
    if more.per_pod is None and more.per_container is None:
        return
    per_pod, per_container = to.get(name, (None, None))
    to[name] = (_sum(per_pod, more.per_pod), _sum(per_container, more.per_container))


def _sum(first: quantity.Quantity | None, right: quantity.Quantity | None) -> quantity.Quantity | None:
    if first is None or right is None:
        return right if first is None else first
    return first + right
