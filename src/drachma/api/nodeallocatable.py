"""Node-allocatable resources of devices (KEP-5517): one model for two spellings.

The KEP publishes ``nodeAllocatableResourceMappings{capacityKey, allocationMultiplier}`` and one quantity per
resource in the pod's status; Kubernetes 1.37 publishes ``nodeAllocatableResources{mapping, overhead}`` and splits
the pod's status likewise. Objects keep the spelling that they were written in; components read the 1.37 form, through
:func:`resources_of`.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from drachma.api.struct import ABSENT_MAP, ABSENT_TUPLE, ZERO_TEXT, Struct
from drachma.values import quantity


class NodeAllocatableMapping(Struct, frozen=True, kw_only=True):
    """Amount of the resource that the device is: per unit of a capacity, or per device."""

    capacity_key: str | None = None
    capacity_multiplier: quantity.Quantity | None = None
    device_multiplier: quantity.Quantity | None = None


class NodeAllocatableOverhead(Struct, frozen=True, kw_only=True):
    """Amount of the resource that the device needs in addition."""

    per_pod: quantity.Quantity | None = None
    per_container: quantity.Quantity | None = None


class NodeAllocatableResource(Struct, frozen=True, kw_only=True):
    """Effect of a device on one node-allocatable resource, in 1.37's form.

    ``accounting_policy`` is of KEP-5517's future section.
    """

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None
    accounting_policy: str | None = None


class NodeAllocatableResourceMapping(Struct, frozen=True, kw_only=True):
    """Effect of a device on one resource in the KEP's form; the multiplier defaults to 1."""

    capacity_key: str | None = None
    allocation_multiplier: quantity.Quantity | None = None
    accounting_policy: str | None = None


class NodeAllocatableMappedResource(Struct, frozen=True, kw_only=True):
    """Amount of a resource that a claim's devices are."""

    name: str = ZERO_TEXT
    amount: quantity.Quantity | None = msgspec.field(default=None, name="quantity")


class NodeAllocatableOverheadResource(Struct, frozen=True, kw_only=True):
    """Amount of a resource that a claim's devices need in addition."""

    name: str = ZERO_TEXT
    per_pod: quantity.Quantity | None = None
    per_container: quantity.Quantity | None = None


class NodeAllocatableResourceClaimStatus(Struct, frozen=True, kw_only=True):
    """Amounts that a claim adds to a pod's requests: ``resources`` in the KEP's form, other fields in 1.37's."""

    resource_claim_name: str = ZERO_TEXT
    containers: tuple[str, ...] = ABSENT_TUPLE
    resources: Mapping[str, quantity.Quantity] = ABSENT_MAP
    mapping: tuple[NodeAllocatableMappedResource, ...] = ABSENT_TUPLE
    overhead: tuple[NodeAllocatableOverheadResource, ...] = ABSENT_TUPLE

    def mapped(self) -> dict[str, quantity.Quantity]:
        """Return the mapped amount of each resource, from both spellings; 1.37's takes precedence."""
        return {
            **self.resources,
            **{entry.name: entry.amount for entry in self.mapping if entry.amount is not None},
        }


class _Publishes(Protocol):
    @property
    def node_allocatable_resources(self) -> Mapping[str, NodeAllocatableResource]: ...
    @property
    def node_allocatable_resource_mappings(self) -> Mapping[str, NodeAllocatableResourceMapping]: ...


def resources_of(device: _Publishes) -> Mapping[str, NodeAllocatableResource]:
    """Return a device's node-allocatable resources in 1.37's form, which takes precedence over the KEP's."""
    if not device.node_allocatable_resource_mappings:
        return device.node_allocatable_resources
    translated = {name: _from_kep(mapping) for name, mapping in device.node_allocatable_resource_mappings.items()}
    return {**translated, **device.node_allocatable_resources}


def _from_kep(mapping: NodeAllocatableResourceMapping) -> NodeAllocatableResource:
    multiplier = mapping.allocation_multiplier
    if mapping.capacity_key is not None:
        current = NodeAllocatableMapping(capacity_key=mapping.capacity_key, capacity_multiplier=multiplier)
    else:
        current = NodeAllocatableMapping(device_multiplier=multiplier or quantity.Quantity.from_int(1))
    return NodeAllocatableResource(mapping=current, accounting_policy=mapping.accounting_policy)
