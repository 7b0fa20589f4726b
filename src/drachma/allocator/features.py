"""Features: which of upstream's feature gates are on, as far as they change what the allocator does.

Upstream has three implementations and picks the most stable one that has all features asked for. Here is one, and its
answers are those of the newest ("experimental") with the same gates. Differs from upstream: with none but old gates
on, kube-scheduler would run its "stable" implementation, which refuses distinctAttribute constraints and takes pools
in random order and slices in the order listed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from drachma import errors


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """What is on; everything is off unless said otherwise."""

    admin_access: bool = False
    compatibility_groups: bool = False
    consumable_capacity: bool = False
    derived_attributes: bool = False
    device_binding: bool = False
    device_taints: bool = False
    fractional_capacity_range: bool = False
    list_type_attributes: bool = False
    optional_node_operations: bool = False
    partitionable_devices: bool = False
    prioritized_list: bool = False

    @classmethod
    def of_gates(cls, gates: Iterable[str]) -> Features:
        """The features of these gates; AllocationError for a gate that the allocator does not know.

        Binding conditions need two gates at once, written with a plus or as two entries. ``all`` stands for every gate.
        """
        wanted = {part for gate in gates for part in gate.split("+")}
        if "all" in wanted:
            return ALL
        unknown = sorted(wanted - _FIELDS.keys() - _BINDING)
        if unknown:
            raise errors.AllocationError(f"feature gate {unknown[0]}: not known to the allocator")
        fields = {_FIELDS[gate]: True for gate in wanted if gate in _FIELDS}
        return cls(**fields, device_binding=wanted >= _BINDING)


OPTIONAL_NODE_OPERATIONS: Final = "DRAOptionalNodeOperations"
"""The gate, which is also what a node declares that can leave node operations out."""

_BINDING: Final = frozenset({"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"})
_FIELDS: Final = {
    "DRAAdminAccess": "admin_access",
    "DRAConsumableCapacity": "consumable_capacity",
    "DRADerivedAttributes": "derived_attributes",
    "DRADeviceCompatibilityGroups": "compatibility_groups",
    "DRADeviceTaints": "device_taints",
    "DRAFractionalCapacityRange": "fractional_capacity_range",
    "DRAListTypeAttributes": "list_type_attributes",
    OPTIONAL_NODE_OPERATIONS: "optional_node_operations",
    "DRAPartitionableDevices": "partitionable_devices",
    "DRAPrioritizedList": "prioritized_list",
}

ALL: Final = Features(**dict.fromkeys(_FIELDS.values(), True), device_binding=True)
"""Every feature on."""

GATES: Final = frozenset({*_FIELDS, *_BINDING})
"""The gates that change what the allocator does."""
