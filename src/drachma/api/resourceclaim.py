"""ResourceClaim: requested devices, allocated devices, and their users."""

from collections.abc import Mapping

import msgspec

from drachma.api import devices, meta, nodeselector
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, ZERO_TEXT, ZERO_TUPLE, Int64, Struct
from drachma.values import quantity


class CapacityRequirements(Struct, frozen=True, kw_only=True):
    """Requested capacity of a shared device."""

    requests: Mapping[str, quantity.Quantity] = ABSENT_MAP


class DeviceDerivedAttribute(Struct, frozen=True, kw_only=True):
    """An attribute computed by a CEL expression, for use in constraints."""

    name: str = ZERO_TEXT
    expression: str = ZERO_TEXT


class ExactDeviceRequest(Struct, frozen=True, kw_only=True):
    """One way to satisfy a request."""

    device_class_name: str = ZERO_TEXT
    selectors: tuple[devices.DeviceSelector, ...] = ABSENT_TUPLE
    allocation_mode: str = ABSENT_TEXT
    count: Int64 = ABSENT_INT
    admin_access: bool | None = None
    tolerations: tuple[devices.DeviceToleration, ...] = ABSENT_TUPLE
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ABSENT_TUPLE


class DeviceSubRequest(Struct, frozen=True, kw_only=True):
    """Alternative of a request. The first one that fits is allocated (KEP-4816)."""

    name: str = ZERO_TEXT
    device_class_name: str = ZERO_TEXT
    selectors: tuple[devices.DeviceSelector, ...] = ABSENT_TUPLE
    allocation_mode: str = ABSENT_TEXT
    count: Int64 = ABSENT_INT
    tolerations: tuple[devices.DeviceToleration, ...] = ABSENT_TUPLE
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ABSENT_TUPLE


class DeviceRequest(Struct, frozen=True, kw_only=True):
    """A named request: ``exactly`` one alternative, or the ``first_available`` of several."""

    name: str = ZERO_TEXT
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ABSENT_TUPLE


class DeviceConstraint(Struct, frozen=True, kw_only=True):
    """Constraint on the devices of some requests, or of all without ``requests``."""

    requests: tuple[str, ...] = ABSENT_TUPLE
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Struct, frozen=True, kw_only=True):
    """Configuration for the devices of some requests, or of all without ``requests``."""

    requests: tuple[str, ...] = ABSENT_TUPLE
    opaque: devices.OpaqueDeviceConfiguration | None = None


class DeviceClaim(Struct, frozen=True, kw_only=True):
    """Requests, constraints and configuration of a claim."""

    requests: tuple[DeviceRequest, ...] = ZERO_TUPLE
    constraints: tuple[DeviceConstraint, ...] = ABSENT_TUPLE
    config: tuple[DeviceClaimConfiguration, ...] = ABSENT_TUPLE


class ResourceClaimSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a claim and of a claim template's claims."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(Struct, frozen=True, kw_only=True):
    """One allocated device; ``request`` is ``request/subrequest`` for a subrequest."""

    request: str = ZERO_TEXT
    driver: str = ZERO_TEXT
    pool: str = ZERO_TEXT
    device: str = ZERO_TEXT
    admin_access: bool | None = None
    tolerations: tuple[devices.DeviceToleration, ...] = ABSENT_TUPLE
    binding_conditions: tuple[str, ...] = ABSENT_TUPLE
    binding_failure_conditions: tuple[str, ...] = ABSENT_TUPLE
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: Mapping[str, quantity.Quantity] = ABSENT_MAP
    skip_node_operations: tuple[str, ...] = ABSENT_TUPLE


class DeviceAllocationConfiguration(Struct, frozen=True, kw_only=True):
    """Configuration for allocated devices, and its source: class or claim."""

    source: str = ZERO_TEXT
    requests: tuple[str, ...] = ABSENT_TUPLE
    opaque: devices.OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Struct, frozen=True, kw_only=True):
    """The devices of an allocation and their configuration."""

    results: tuple[DeviceRequestAllocationResult, ...] = ABSENT_TUPLE
    config: tuple[DeviceAllocationConfiguration, ...] = ABSENT_TUPLE


class AllocationResult(Struct, frozen=True, kw_only=True):
    """Allocated devices, and the nodes that can use them."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: nodeselector.NodeSelector | None = None
    allocation_timestamp: meta.Time | None = None


class ResourceClaimConsumerReference(Struct, frozen=True, kw_only=True):
    """Consumer that may use the claim."""

    api_group: str = ABSENT_TEXT
    resource: str = ZERO_TEXT
    name: str = ZERO_TEXT
    uid: str = ZERO_TEXT


class NetworkDeviceData(Struct, frozen=True, kw_only=True):
    """Report of a network driver about an allocated interface."""

    interface_name: str = ABSENT_TEXT
    ips: tuple[str, ...] = ABSENT_TUPLE
    hardware_address: str = ABSENT_TEXT


class AllocatedDeviceStatus(Struct, frozen=True, kw_only=True):
    """Report of a driver about an allocated device."""

    driver: str = ZERO_TEXT
    pool: str = ZERO_TEXT
    device: str = ZERO_TEXT
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[meta.Condition, ...] = ZERO_TUPLE
    data: meta.Opaque = None
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(Struct, frozen=True, kw_only=True):
    """Allocation and use of a claim."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ABSENT_TUPLE
    devices: tuple[AllocatedDeviceStatus, ...] = ABSENT_TUPLE


ABSENT_STATUS = ResourceClaimStatus()


class ResourceClaim(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io`` ResourceClaim, namespaced."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ABSENT_STATUS
