"""Fields of disabled features, which are dropped from what clients send unless the stored object uses them.

A feature in use stays usable in an object, so that an update by someone who only changes something else loses nothing.
Fields are paths of attributes that lead through the items of lists and the values of maps. A field is in use if it is
not empty; one with a question mark also if it is there and empty.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import structs

from drachma.api import gates as feature
from drachma.api import resourceclaim, struct
from drachma.api.gates import Gate, Gates

_StructT = TypeVar("_StructT", bound=struct.Struct)


class _Feature(NamedTuple):
    """Gates that must all be enabled, and the fields of the feature."""

    gates: tuple[Gate, ...]
    fields: tuple[str, ...]


CLASS: Final = (_Feature((Gate.EXTENDED_RESOURCE,), ("extended_resource_name",)),)
CLAIM: Final = (
    _Feature((Gate.PRIORITIZED_LIST,), ("devices.requests.first_available",)),
    _Feature(
        (Gate.DEVICE_TAINTS,),
        ("devices.requests.exactly.tolerations", "devices.requests.first_available.tolerations"),
    ),
    _Feature((Gate.ADMIN_ACCESS,), ("devices.requests.exactly.admin_access",)),
    _Feature(
        (Gate.CONSUMABLE_CAPACITY,),
        (
            "devices.constraints.distinct_attribute",
            "devices.requests.exactly.capacity",
            "devices.requests.first_available.capacity",
        ),
    ),
    _Feature(
        (Gate.DERIVED_ATTRIBUTES,),
        ("devices.requests.exactly.derived_attributes", "devices.requests.first_available.derived_attributes"),
    ),
)
_CLAIM_STATUS: Final = (
    _Feature((Gate.RESOURCE_CLAIM_DEVICE_STATUS,), ("devices",)),
    _Feature((Gate.ADMIN_ACCESS,), ("allocation.devices.results.admin_access",)),
    _Feature(
        (Gate.CONSUMABLE_CAPACITY,),
        (
            "allocation.devices.results.share_id",
            "allocation.devices.results.consumed_capacity?",
            "devices.share_id",
        ),
    ),
    _Feature(
        (Gate.DEVICE_BINDING_CONDITIONS,),
        (
            "allocation.devices.results.binding_conditions?",
            "allocation.devices.results.binding_failure_conditions?",
        ),
    ),
    _Feature((Gate.OPTIONAL_NODE_OPERATIONS,), ("allocation.devices.results.skip_node_operations",)),
)
SLICE: Final = (
    _Feature((Gate.DEVICE_TAINTS,), ("devices.taints",)),
    _Feature(
        (Gate.PARTITIONABLE_DEVICES,),
        (
            "shared_counters",
            "per_device_node_selection",
            "devices.consumes_counters",
            "devices.node_name",
            "devices.node_selector",
            "devices.all_nodes",
        ),
    ),
    _Feature(
        (Gate.DEVICE_BINDING_CONDITIONS, Gate.RESOURCE_CLAIM_DEVICE_STATUS),
        ("devices.binding_conditions", "devices.binding_failure_conditions", "devices.binds_to_node"),
    ),
    _Feature((Gate.CONSUMABLE_CAPACITY,), ("devices.allow_multiple_allocations", "devices.capacity.request_policy")),
    _Feature((Gate.DEVICE_COMPATIBILITY_GROUPS,), ("devices.consumes_counters.compatibility_groups",)),
    _Feature(
        (Gate.NODE_ALLOCATABLE_RESOURCES,),
        ("devices.node_allocatable_resources", "devices.node_allocatable_resource_mappings"),
    ),
    _Feature(
        (Gate.LIST_TYPE_ATTRIBUTES,),
        (
            "devices.attributes.int_values?",
            "devices.attributes.bool_values?",
            "devices.attributes.string_values?",
            "devices.attributes.version_values?",
        ),
    ),
    _Feature((Gate.PARTITIONABLE_DEVICES_TYPE,), ("partition_type_attribute",)),
    _Feature((Gate.OPTIONAL_NODE_OPERATIONS,), ("skip_node_operations",)),
)


def drop_from_claim_status(
    status: resourceclaim.ResourceClaimStatus, *, old: resourceclaim.ResourceClaim, gates: Gates
) -> resourceclaim.ResourceClaimStatus:
    """Return the status of a claim without fields of disabled features that neither its spec nor its status use."""
    disabled = [each for each in _CLAIM_STATUS if not all(map(gates.on, each.gates))]
    if not disabled:
        return status
    in_use = {each.gates for each in CLAIM if _uses(old.spec, each)}
    return drop(status, [each for each in disabled if each.gates not in in_use], old=old.status, gates=gates)


def drop(value: _StructT, features: Sequence[_Feature], *, old: _StructT | None, gates: Gates) -> _StructT:
    """Return a value without fields of disabled features that the old value does not use."""
    if gates.enabled >= feature.ALL.enabled:
        return value
    for each in features:
        if not all(map(gates.on, each.gates)) and not _uses(old, each):
            for field in each.fields:
                value = _without(value, field.removesuffix("?").split("."))
    return value


def _uses(owner: struct.Struct | None, each: _Feature) -> bool:
    if owner is None:
        return False
    return any(
        _is_used(owner, field.removesuffix("?").split("."), counts_empty=field.endswith("?")) for field in each.fields
    )


def _is_used(owner: Any, names: Sequence[str], *, counts_empty: bool) -> bool:
    """Return True if a field of a value, or of its parts, is in use."""
    if owner is None:
        return False
    if not isinstance(owner, struct.Struct) and isinstance(owner, tuple | Mapping):
        parts = owner.values() if isinstance(owner, Mapping) else owner
        return any(_is_used(part, names, counts_empty=counts_empty) for part in parts)
    value = getattr(owner, names[0])
    if len(names) > 1:
        return _is_used(value, names[1:], counts_empty=counts_empty)
    if counts_empty:
        return not struct.is_absent(value)
    return bool(value) if isinstance(value, tuple | Mapping) else value is not None


def _without(owner: Any, names: Sequence[str]) -> Any:
    """Return a value, or its parts, without a field; the same object if there is nothing to drop."""
    if not owner:
        return owner
    if isinstance(owner, tuple):
        parts = tuple(_without(part, names) for part in owner)
        return owner if all(part is before for part, before in zip(parts, owner, strict=True)) else parts
    if isinstance(owner, Mapping):
        values = {key: _without(value, names) for key, value in owner.items()}
        return owner if all(value is owner[key] for key, value in values.items()) else values
    name, value = names[0], getattr(owner, names[0])
    fields = dict(zip(owner.__struct_fields__, owner.__struct_defaults__, strict=True))
    changed = _without(value, names[1:]) if len(names) > 1 else fields[name]
    return owner if changed is value else structs.replace(owner, **{name: changed})
