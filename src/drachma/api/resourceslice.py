"""ResourceSlice: devices of a pool that a driver publishes."""

from collections.abc import Mapping

import msgspec

from drachma.api import devices, meta, nodeallocatable, nodeselector
from drachma.api.struct import ABSENT_MAP, ABSENT_TUPLE, ZERO_INT, ZERO_TEXT, Int64, Struct
from drachma.values import quantity


class DeviceAttribute(Struct, frozen=True, kw_only=True):
    """A typed value; exactly one member is set."""

    int_value: Int64 | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string_value: str | None = msgspec.field(default=None, name="string")
    version_value: str | None = msgspec.field(default=None, name="version")
    int_values: tuple[Int64, ...] = msgspec.field(default=ABSENT_TUPLE, name="ints")
    bool_values: tuple[bool, ...] = msgspec.field(default=ABSENT_TUPLE, name="bools")
    string_values: tuple[str, ...] = msgspec.field(default=ABSENT_TUPLE, name="strings")
    version_values: tuple[str, ...] = msgspec.field(default=ABSENT_TUPLE, name="versions")


class CapacityRequestPolicyRange(Struct, frozen=True, kw_only=True):
    """Requests between ``min`` and ``max``, rounded up to a multiple of ``step``."""

    min: quantity.Quantity | None = None
    max: quantity.Quantity | None = None
    step: quantity.Quantity | None = None


class CapacityRequestPolicy(Struct, frozen=True, kw_only=True):
    """Valid amounts of requests for a shared capacity, and the default amount."""

    default: quantity.Quantity | None = None
    valid_values: tuple[quantity.Quantity, ...] = ABSENT_TUPLE
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Struct, frozen=True, kw_only=True):
    """Capacity of a device."""

    value: quantity.Quantity | None = None
    request_policy: CapacityRequestPolicy | None = None


class Counter(Struct, frozen=True, kw_only=True):
    """An amount in a counter set, or an amount consumed from it."""

    value: quantity.Quantity | None = None


class CounterSet(Struct, frozen=True, kw_only=True):
    """Counters that several devices of a pool draw from."""

    name: str = ZERO_TEXT
    counters: Mapping[str, Counter] = ABSENT_MAP


class DeviceCounterConsumption(Struct, frozen=True, kw_only=True):
    """Amounts that an allocated device consumes from a counter set."""

    counter_set: str = ZERO_TEXT
    counters: Mapping[str, Counter] = ABSENT_MAP
    compatibility_groups: tuple[str, ...] = ABSENT_TUPLE


class BasicDevice(Struct, frozen=True, kw_only=True):
    """Fields of a device except its name; v1beta1 has them in ``basic``."""

    attributes: Mapping[str, DeviceAttribute] = ABSENT_MAP
    capacity: Mapping[str, DeviceCapacity] = ABSENT_MAP
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ABSENT_TUPLE
    node_name: str | None = None
    node_selector: nodeselector.NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[devices.DeviceTaint, ...] = ABSENT_TUPLE
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ABSENT_TUPLE
    binding_failure_conditions: tuple[str, ...] = ABSENT_TUPLE
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: Mapping[str, nodeallocatable.NodeAllocatableResource] = ABSENT_MAP
    node_allocatable_resource_mappings: Mapping[str, nodeallocatable.NodeAllocatableResourceMapping] = ABSENT_MAP


class Device(BasicDevice, frozen=True, kw_only=True):
    """One device of a slice."""

    name: str = ZERO_TEXT


class ResourcePool(Struct, frozen=True, kw_only=True):
    """Pool of a slice: name, generation and number of slices."""

    name: str = ZERO_TEXT
    generation: Int64 = ZERO_INT
    resource_slice_count: Int64 = ZERO_INT


ABSENT_POOL = ResourcePool()


class ResourceSliceSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a slice."""

    driver: str = ZERO_TEXT
    pool: ResourcePool = ABSENT_POOL
    node_name: str | None = None
    node_selector: nodeselector.NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ABSENT_TUPLE
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ABSENT_TUPLE
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ABSENT_TUPLE


class ResourceSlice(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io`` ResourceSlice, cluster-scoped."""

    spec: ResourceSliceSpec = ResourceSliceSpec()
