"""Fields of disabled features, which are dropped from what clients send unless the stored object uses them.

A feature in use stays usable in an object, so that an update by someone who only changes something else loses nothing.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import structs

from drachma.api import deviceclass, resourceclaim, resourceslice, struct
from drachma.api import gates as feature
from drachma.api.gates import Gate, Gates
from drachma.api.struct import ABSENT_MAP, ABSENT_TUPLE

_Struct = TypeVar("_Struct", bound=struct.Struct)
_Item = TypeVar("_Item")
_Test = Callable[[Any], bool]


def drop_from_class(
    spec: deviceclass.DeviceClassSpec, *, old: deviceclass.DeviceClassSpec | None, gates: Gates
) -> deviceclass.DeviceClassSpec:
    """Return a class without the extended resource name if that feature is disabled."""
    is_used = old is not None and old.extended_resource_name is not None
    if gates.on(Gate.EXTENDED_RESOURCE) or is_used:
        return spec
    return structs.replace(spec, extended_resource_name=None)


def drop_from_claim(
    spec: resourceclaim.ResourceClaimSpec, *, old: resourceclaim.ResourceClaimSpec | None, gates: Gates
) -> resourceclaim.ResourceClaimSpec:
    """Return the spec of a claim or template without fields of disabled features."""
    if _is_all_on(gates):
        return spec
    claim = spec.devices
    before = old.devices if old is not None else resourceclaim.DeviceClaim()
    if not gates.on(Gate.PRIORITIZED_LIST) and not any(request.first_available for request in before.requests):
        without = (structs.replace(request, first_available=ABSENT_TUPLE) for request in claim.requests)
        claim = _with(claim, requests=_if_written(claim.requests, without))
    if not gates.on(Gate.DEVICE_TAINTS) and not _any_way(before, lambda way: bool(way.tolerations)):
        claim = _each_way(claim, lambda way: structs.replace(way, tolerations=ABSENT_TUPLE))
    if not gates.on(Gate.ADMIN_ACCESS) and not uses_admin_access(before):
        claim = _each_exact(claim, lambda exactly: structs.replace(exactly, admin_access=None))
    if not gates.on(Gate.CONSUMABLE_CAPACITY) and not uses_consumable_capacity(before):
        constraints = (structs.replace(constraint, distinct_attribute=None) for constraint in claim.constraints)
        claim = _with(claim, constraints=_if_written(claim.constraints, constraints))
        claim = _each_way(claim, lambda way: structs.replace(way, capacity=None))
    if not gates.on(Gate.DERIVED_ATTRIBUTES) and not _any_way(before, lambda way: bool(way.derived_attributes)):
        claim = _each_way(claim, lambda way: structs.replace(way, derived_attributes=ABSENT_TUPLE))
    return spec if claim is spec.devices else structs.replace(spec, devices=claim)


def drop_from_claim_status(
    status: resourceclaim.ResourceClaimStatus, *, old: resourceclaim.ResourceClaim, gates: Gates
) -> resourceclaim.ResourceClaimStatus:
    """Return the status of a claim without fields of disabled features."""
    if _is_all_on(gates):
        return status
    before = old.status.allocation.devices.results if old.status.allocation is not None else ()
    if not gates.on(Gate.RESOURCE_CLAIM_DEVICE_STATUS) and not old.status.devices:
        status = _with(status, devices=ABSENT_TUPLE)
    admin = uses_admin_access(old.spec.devices) or any(result.admin_access is not None for result in before)
    if not gates.on(Gate.ADMIN_ACCESS) and not admin:
        status = _each_result(status, admin_access=None)
    shares = (
        uses_consumable_capacity(old.spec.devices)
        or any(result.share_id is not None or _is_set(result.consumed_capacity) for result in before)
        or any(device.share_id is not None for device in old.status.devices)
    )
    if not gates.on(Gate.CONSUMABLE_CAPACITY) and not shares:
        status = _each_result(status, share_id=None, consumed_capacity=ABSENT_MAP)
        unshared = (structs.replace(device, share_id=None) for device in status.devices)
        status = _with(status, devices=_if_written(status.devices, unshared))
    binds = any(_is_set(result.binding_conditions) or _is_set(result.binding_failure_conditions) for result in before)
    if not gates.on(Gate.DEVICE_BINDING_CONDITIONS) and not binds:
        status = _each_result(status, binding_conditions=ABSENT_TUPLE, binding_failure_conditions=ABSENT_TUPLE)
    skips = any(result.skip_node_operations for result in before)
    if not gates.on(Gate.OPTIONAL_NODE_OPERATIONS) and not skips:
        status = _each_result(status, skip_node_operations=ABSENT_TUPLE)
    return status


def drop_from_slice(
    spec: resourceslice.ResourceSliceSpec, *, old: resourceslice.ResourceSliceSpec | None, gates: Gates
) -> resourceslice.ResourceSliceSpec:
    """Return a slice without fields of disabled features."""
    if _is_all_on(gates):
        return spec
    before = old if old is not None else resourceslice.ResourceSliceSpec()

    def unused(test: _Test) -> bool:
        return not any(test(device) for device in before.devices)

    if not gates.on(Gate.DEVICE_TAINTS) and unused(lambda device: bool(device.taints)):
        spec = _each_device(spec, taints=ABSENT_TUPLE)
    if not gates.on(Gate.PARTITIONABLE_DEVICES) and not _uses_partitions(before):
        spec = _with(spec, shared_counters=ABSENT_TUPLE, per_device_node_selection=None)
        spec = _each_device(spec, consumes_counters=ABSENT_TUPLE, node_name=None, node_selector=None, all_nodes=None)
    binding = gates.on(Gate.DEVICE_BINDING_CONDITIONS) and gates.on(Gate.RESOURCE_CLAIM_DEVICE_STATUS)
    if not binding and unused(_uses_binding):
        spec = _each_device(
            spec, binding_conditions=ABSENT_TUPLE, binding_failure_conditions=ABSENT_TUPLE, binds_to_node=None
        )
    if not gates.on(Gate.CONSUMABLE_CAPACITY) and unused(_uses_shares):
        spec = _each_device(spec, allow_multiple_allocations=None)
        spec = _change_devices(spec, _drop_request_policies)
    if not gates.on(Gate.DEVICE_COMPATIBILITY_GROUPS) and unused(_uses_groups):
        spec = _change_devices(spec, _drop_groups)
    if not gates.on(Gate.NODE_ALLOCATABLE_RESOURCES) and unused(uses_node_allocatable):
        spec = _each_device(spec, node_allocatable_resources=ABSENT_MAP, node_allocatable_resource_mappings=ABSENT_MAP)
    if not gates.on(Gate.LIST_TYPE_ATTRIBUTES) and unused(_uses_lists):
        spec = _change_devices(spec, _drop_lists)
    if not gates.on(Gate.PARTITIONABLE_DEVICES_TYPE) and before.partition_type_attribute is None:
        spec = _with(spec, partition_type_attribute=None)
    if not gates.on(Gate.OPTIONAL_NODE_OPERATIONS) and not before.skip_node_operations:
        spec = _with(spec, skip_node_operations=ABSENT_TUPLE)
    return spec


def uses_admin_access(claim: resourceclaim.DeviceClaim) -> bool:
    """Return True if a request sets admin access."""
    return any(request.exactly is not None and request.exactly.admin_access is not None for request in claim.requests)


def uses_consumable_capacity(claim: resourceclaim.DeviceClaim) -> bool:
    """Return True if a request asks for a part of a device, or a constraint for distinct values."""
    distinct = any(constraint.distinct_attribute is not None for constraint in claim.constraints)
    return distinct or _any_way(claim, lambda way: way.capacity is not None)


def uses_node_allocatable(device: resourceslice.Device) -> bool:
    """Return True if a device represents resources of its node."""
    return bool(device.node_allocatable_resources or device.node_allocatable_resource_mappings)


_LISTS = ("int_values", "bool_values", "string_values", "version_values")


def _is_all_on(gates: Gates) -> bool:
    """Return True if all features that drachma implements are enabled, which is the common case."""
    return gates.enabled >= feature.ALL.enabled


def _uses_partitions(spec: resourceslice.ResourceSliceSpec) -> bool:
    return bool(spec.shared_counters or spec.per_device_node_selection is not None) or any(
        device.consumes_counters
        or device.node_name is not None
        or device.node_selector is not None
        or device.all_nodes is not None
        for device in spec.devices
    )


def _uses_binding(device: resourceslice.Device) -> bool:
    conditions = device.binding_conditions or device.binding_failure_conditions
    return bool(conditions) or device.binds_to_node is not None


def _uses_shares(device: resourceslice.Device) -> bool:
    policies = (capacity.request_policy for capacity in device.capacity.values())
    return device.allow_multiple_allocations is not None or any(policy is not None for policy in policies)


def _uses_groups(device: resourceslice.Device) -> bool:
    return any(consumption.compatibility_groups for consumption in device.consumes_counters)


def _uses_lists(device: resourceslice.Device) -> bool:
    return any(_is_set(getattr(attribute, name)) for attribute in device.attributes.values() for name in _LISTS)


def _drop_request_policies(device: resourceslice.Device) -> resourceslice.Device:
    capacities = {name: structs.replace(capacity, request_policy=None) for name, capacity in device.capacity.items()}
    return structs.replace(device, capacity=capacities) if capacities else device


def _drop_groups(device: resourceslice.Device) -> resourceslice.Device:
    consumptions = (
        structs.replace(consumption, compatibility_groups=ABSENT_TUPLE) for consumption in device.consumes_counters
    )
    return structs.replace(device, consumes_counters=_if_written(device.consumes_counters, consumptions))


def _drop_lists(device: resourceslice.Device) -> resourceslice.Device:
    nothing = dict.fromkeys(_LISTS, ABSENT_TUPLE)
    attributes = {name: structs.replace(attribute, **nothing) for name, attribute in device.attributes.items()}
    return structs.replace(device, attributes=attributes) if attributes else device


def _any_way(claim: resourceclaim.DeviceClaim, test: _Test) -> bool:
    """Return True if a test holds for any alternative of any request."""
    return any(
        test(way)
        for request in claim.requests
        for way in (*((request.exactly,) if request.exactly is not None else ()), *request.first_available)
    )


def _each_way(claim: resourceclaim.DeviceClaim, change: Callable[[Any], Any]) -> resourceclaim.DeviceClaim:
    claim = _each_exact(claim, change)
    requests = (
        structs.replace(
            request, first_available=_if_written(request.first_available, map(change, request.first_available))
        )
        for request in claim.requests
    )
    return _with(claim, requests=_if_written(claim.requests, requests))


def _each_exact(claim: resourceclaim.DeviceClaim, change: Callable[[Any], Any]) -> resourceclaim.DeviceClaim:
    requests = (
        structs.replace(request, exactly=change(request.exactly)) if request.exactly is not None else request
        for request in claim.requests
    )
    return _with(claim, requests=_if_written(claim.requests, requests))


def _each_result(status: resourceclaim.ResourceClaimStatus, **fields: Any) -> resourceclaim.ResourceClaimStatus:
    if status.allocation is None:
        return status
    allocated = status.allocation.devices
    results = (structs.replace(result, **fields) for result in allocated.results)
    changed = _with(allocated, results=_if_written(allocated.results, results))
    return _with(status, allocation=_with(status.allocation, devices=changed))


def _each_device(spec: resourceslice.ResourceSliceSpec, **fields: Any) -> resourceslice.ResourceSliceSpec:
    return _change_devices(spec, lambda device: structs.replace(device, **fields))


def _change_devices(
    spec: resourceslice.ResourceSliceSpec, change: Callable[[resourceslice.Device], resourceslice.Device]
) -> resourceslice.ResourceSliceSpec:
    return _with(spec, devices=_if_written(spec.devices, map(change, spec.devices)))


def _if_written(items: tuple[_Item, ...], changed: Any) -> tuple[_Item, ...]:
    """Return the changed items; an absent list stays absent."""
    return tuple(changed) if items else items


def _with(owner: _Struct, **fields: Any) -> _Struct:
    is_same = all(getattr(owner, name) is value for name, value in fields.items())
    return owner if is_same else structs.replace(owner, **fields)


def _is_set(value: object) -> bool:
    return not struct.is_absent(value)
