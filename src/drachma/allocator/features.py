"""Features: upstream's feature gates that change the allocator's answers.

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
from drachma.api.gates import Gate, Gates


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """Features of the allocator. All are off by default."""

    absent_classes: bool = False
    """Our own: an alternative whose class does not exist is passed over."""
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
    def of(cls, gates: Gates) -> Features:
        """Return the features that gates turn on. Gates that do not concern the allocator are ignored."""
        fields = {field: gates.on(gate) for gate, field in _FIELDS.items()}
        return cls(
            **fields,
            device_binding=gates.binding_conditions,
            absent_classes=gates.on(Gate.ABSENT_CLASS_ALTERNATIVES),
        )

    @classmethod
    def parse_names(cls, names: Iterable[str]) -> Features:
        """Return the features of gates by their names. Raises AllocationError for an unknown gate.

        Binding conditions need two gates at once, written with a plus or as two entries. ``all`` stands for every gate.
        """
        parts = {part for name in names for part in name.split("+")}
        if "all" in parts:
            return ALL
        unknown = sorted(parts - _FIELDS.keys() - _BINDING)
        if unknown:
            raise errors.AllocationError(f"feature gate {unknown[0]}: not known to the allocator")
        return cls.of(Gates(frozenset(map(Gate, parts))))


_BINDING: Final = frozenset({Gate.DEVICE_BINDING_CONDITIONS, Gate.RESOURCE_CLAIM_DEVICE_STATUS})
_FIELDS: Final = {
    Gate.ADMIN_ACCESS: "admin_access",
    Gate.CONSUMABLE_CAPACITY: "consumable_capacity",
    Gate.DERIVED_ATTRIBUTES: "derived_attributes",
    Gate.DEVICE_COMPATIBILITY_GROUPS: "compatibility_groups",
    Gate.DEVICE_TAINTS: "device_taints",
    Gate.FRACTIONAL_CAPACITY_RANGE: "fractional_capacity_range",
    Gate.LIST_TYPE_ATTRIBUTES: "list_type_attributes",
    Gate.OPTIONAL_NODE_OPERATIONS: "optional_node_operations",
    Gate.PARTITIONABLE_DEVICES: "partitionable_devices",
    Gate.PRIORITIZED_LIST: "prioritized_list",
}

ALL: Final = Features(**dict.fromkeys(_FIELDS.values(), True), device_binding=True)
"""Every feature of upstream on."""
