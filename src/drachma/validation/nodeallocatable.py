"""Rules for node-allocatable resources behind devices (KEP-5517), in slices and in pod status."""

from collections.abc import Mapping
from typing import Final

from drachma.accounting import policies
from drachma.api import nodeallocatable, resourceslice
from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.values import names, quantity

_NOT_ALLOCATABLE: Final = "must be a node allocatable resource name"
_NO_OVERHEAD: Final = "at least one of perPod or perContainer must be set"
_NEGATIVE: Final = "must be non-negative"
_POLICIES: Final = tuple(sorted(policies.Policy))
_Capacities = Mapping[str, resourceslice.DeviceCapacity]


def check_device(device: resourceslice.Device, at: Path) -> Errors:
    """Yield the errors of the node-allocatable resources of a device, in both spellings."""
    below = at.child("nodeAllocatableResources")
    for name in sorted(device.node_allocatable_resources):
        yield from _resource(name, device.node_allocatable_resources[name], device.capacity, at=below.key(name))
    below = at.child("nodeAllocatableResourceMappings")
    for name in sorted(device.node_allocatable_resource_mappings):
        mapping = device.node_allocatable_resource_mappings[name]
        yield from _kep_mapping(name, mapping, device.capacity, at=below.key(name))


def check_status(status: nodeallocatable.NodeAllocatableResourceClaimStatus, at: Path) -> Errors:
    """Yield the errors of the status of a claim in a pod."""
    for position, mapped in enumerate(status.mapping):
        path = at.child("mapping").item(position)
        yield from _name(mapped.name, path.child("name"))
        yield from _not_negative(mapped.amount, path.child("quantity"))
    for position, overhead in enumerate(status.overhead):
        path = at.child("overhead").item(position)
        yield from _name(overhead.name, path.child("name"))
        yield from _overhead(overhead, path)


def check_policies(policies_by_resource: Mapping[str, str], at: Path) -> Errors:
    """Yield the errors of the accounting policies of a class (KEP-5517, future enhancements)."""
    for name in sorted(policies_by_resource):
        yield from _name(name, at.key(name))
        yield from _policy(policies_by_resource[name], at.key(name))


def _policy(policy: str | None, at: Path) -> Errors:
    if policy is not None and policy not in _POLICIES:
        yield fielderror.not_supported(at, policy, _POLICIES)


def _resource(
    name: str, resource: nodeallocatable.NodeAllocatableResource, capacities: _Capacities, *, at: Path
) -> Errors:
    yield from _name(name, at)
    if resource.mapping is None and resource.overhead is None:
        yield fielderror.required(at, "at least one of mapping or overhead must be set")
    if resource.mapping is not None:
        yield from _mapping(resource.mapping, capacities, at.child("mapping"))
    if resource.overhead is not None:
        yield from _overhead(resource.overhead, at.child("overhead"))
    yield from _policy(resource.accounting_policy, at.child("accountingPolicy"))


def _mapping(mapping: nodeallocatable.NodeAllocatableMapping, capacities: _Capacities, at: Path) -> Errors:
    if mapping.capacity_key is not None:
        yield from _capacity_key(mapping.capacity_key, capacities, at.child("capacityKey"))
        if mapping.capacity_multiplier is None:
            detail = "capacityMultiplier is required when capacityKey is set"
            yield fielderror.required(at.child("capacityMultiplier"), detail)
        else:
            yield from _positive(mapping.capacity_multiplier, at.child("capacityMultiplier"))
    yield from _positive(mapping.device_multiplier, at.child("deviceMultiplier"))
    if mapping.capacity_multiplier is not None and mapping.capacity_key is None:
        detail = "capacityKey is required when capacityMultiplier is set"
        yield fielderror.required(at.child("capacityKey"), detail)


def _kep_mapping(
    name: str, mapping: nodeallocatable.NodeAllocatableResourceMapping, capacities: _Capacities, *, at: Path
) -> Errors:
    """The KEP's spelling, which upstream no longer has: the rules of today's mapping, without what it lacks."""
    yield from _name(name, at)
    if mapping.capacity_key is not None:
        yield from _capacity_key(mapping.capacity_key, capacities, at.child("capacityKey"))
    yield from _positive(mapping.allocation_multiplier, at.child("allocationMultiplier"))
    yield from _policy(mapping.accounting_policy, at.child("accountingPolicy"))


def _capacity_key(key: str, capacities: _Capacities, at: Path) -> Errors:
    if not key:
        yield fielderror.invalid(at, "", "capacityKey must not be an empty string")
    elif key not in capacities:
        yield fielderror.not_found(at, rendering.named(key))


def _overhead(
    overhead: nodeallocatable.NodeAllocatableOverhead | nodeallocatable.NodeAllocatableOverheadResource, at: Path
) -> Errors:
    if overhead.per_pod is None and overhead.per_container is None:
        yield fielderror.invalid(at, "", _NO_OVERHEAD)
    yield from _not_negative(overhead.per_pod, at.child("perPod"))
    yield from _not_negative(overhead.per_container, at.child("perContainer"))


def _name(name: str, at: Path) -> Errors:
    if name not in ("cpu", "memory") and not names.is_huge_page_resource(name):
        yield fielderror.invalid(at, rendering.named(name), _NOT_ALLOCATABLE)


def _positive(amount: quantity.Quantity | None, at: Path) -> Errors:
    if amount is not None and amount.sign <= 0:
        yield fielderror.invalid(at, str(amount), "must be positive")


def _not_negative(amount: quantity.Quantity | None, at: Path) -> Errors:
    if amount is not None and amount.sign < 0:
        yield fielderror.invalid(at, str(amount), _NEGATIVE)
