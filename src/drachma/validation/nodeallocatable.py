"""Rules for node-allocatable resources behind devices (KEP-5517), in slices and in pod status."""

from collections.abc import Mapping
from typing import Final

from drachma.accounting import policies, resourcenames
from drachma.api import resourceslice
from drachma.validation import fielderror, rendering, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.values import names, quantity

_POLICIES: Final = tuple(sorted(policies.Policy))


def check_device(device: resourceslice.Device, at: Path) -> Errors:
    """Yield the errors of the node-allocatable resources of a device, in both spellings."""
    for name, resource in sorted(device.node_allocatable_resources.items()):
        place = at.child("nodeAllocatableResources").key(name)
        yield from _resource_name(name, place)
        yield from _TYPES["NodeAllocatableResource"](resource, place, device.capacity)
    for name, mapping in sorted(device.node_allocatable_resource_mappings.items()):
        place = at.child("nodeAllocatableResourceMappings").key(name)
        yield from _kep_resource_name(name, place)
        yield from _TYPES["NodeAllocatableResourceMapping"](mapping, place, device.capacity)


def check_policies(policies_by_resource: Mapping[str, str], at: Path) -> Errors:
    """Yield the errors of the accounting policies of a class (KEP-5517, future enhancements)."""
    for name in sorted(policies_by_resource):
        yield from _kep_resource_name(name, at.key(name))
        yield from _accounting_policy(policies_by_resource[name], at.key(name))


def _accounting_policy(policy: str, at: Path) -> Errors:
    if policy not in _POLICIES:
        yield fielderror.not_supported(at, policy, _POLICIES)


def _capacity_key(key: str, at: Path, capacities: Mapping[str, resourceslice.DeviceCapacity]) -> Errors:
    if not key:
        yield fielderror.invalid(at, "", "capacityKey must not be an empty string")
    elif key not in capacities:
        yield fielderror.not_found(at, rendering.named(key))


def _resource_name(name: str, at: Path) -> Errors:
    if name not in ("cpu", "memory") and not names.is_huge_page_resource(name):
        yield fielderror.invalid(at, rendering.named(name), "must be a node allocatable resource name")


def _kep_resource_name(name: str, at: Path) -> Errors:
    """Check a name in a field of the KEP. The KEP also has ephemeral storage, which 1.37's own fields refuse."""
    if name != resourcenames.EPHEMERAL_STORAGE:
        yield from _resource_name(name, at)


def _kep_amounts(amounts: Mapping[str, quantity.Quantity], at: Path) -> Errors:
    for name, amount in sorted(amounts.items()):
        yield from _kep_resource_name(name, at.key(name))
        yield from _amount_from_zero(amount, at.key(name))


def _positive_amount(amount: quantity.Quantity, at: Path) -> Errors:
    if amount.sign <= 0:
        yield fielderror.invalid(at, str(amount), "must be positive")


def _amount_from_zero(amount: quantity.Quantity, at: Path) -> Errors:
    if amount.sign < 0:
        yield fielderror.invalid(at, str(amount), "must be non-negative")


_TYPES: Final = rulenotation.load_structs("nodeallocatable", globals())
check_status: Final = _TYPES["NodeAllocatableResourceClaimStatus"]
"""Returns the errors of the status of a claim in a pod."""
