"""The rules that upstream declares on its API types, as :mod:`drachma.validation.declared` applies them.

What upstream declares in its alpha stage never reaches clients and is left out. v1 and v1beta2 have the same rules;
v1beta1 and v1alpha3 have them on their own flat requests and nested devices.
"""

from typing import Final

from drachma.api import gates as feature
from drachma.validation import allocation, declaredformats, deviceclaim, fielderror, limits, nodeoperations, taints
from drachma.validation.declared import (
    Field,
    Rule,
    Stop,
    TypeRules,
    Values,
    each,
    each_key,
    each_value,
    immutable,
    itself,
    key_of,
    max_items,
    max_length,
    no_modify,
    one_of,
    optional,
    optional_pointer,
    required,
    union,
    unique,
)
from drachma.validation.path import Path


def _required_pointer(values: Values, at: Path) -> list[fielderror.FieldError] | None:
    return [fielderror.required(at)] if values.new is None else None


def _list(attribute: str, wire_name: str, *rules: Rule, limit: int | None = None) -> Field:
    stops: tuple[Stop, ...] = (optional,) if limit is None else (optional, max_items(limit))
    return Field(attribute, wire_name, stops, rules)


def _driver(*rules: Rule) -> Field:
    return Field("driver", "driver", (required,), rules)


_operations: Final = _list(
    "skip_node_operations",
    "skipNodeOperations",
    unique(itself),
    each(one_of(*nodeoperations.OPERATIONS), key=itself),
)
_binding: Final = (
    _list("binding_conditions", "bindingConditions", limit=limits.BINDING_CONDITIONS),
    _list("binding_failure_conditions", "bindingFailureConditions", limit=limits.BINDING_CONDITIONS),
)
_toleration: Final = TypeRules(
    (
        Field("key", "key", (optional,), (declaredformats.label_key,)),
        Field("operator", "operator", (required,), (one_of(*taints.OPERATORS),)),
        Field("effect", "effect", (optional,), (one_of(*taints.EFFECTS),)),
    )
)
_taint: Final = TypeRules((Field("effect", "effect", (required,), (one_of(*taints.EFFECTS),)),))
_names_of_requests: Final = _list("requests", "requests", unique(itself), limit=limits.REQUESTS)


def _opaque(driver: Field) -> Field:
    return Field("opaque", "opaque", (optional_pointer,), (TypeRules((driver,)),))


_class_name: Final = Field("device_class_name", "deviceClassName", (required,), (declaredformats.long_name,))
_selectors: Final = _list("selectors", "selectors", limit=limits.SELECTORS)
_allocation_mode: Final = Field(
    "allocation_mode", "allocationMode", (optional,), (one_of(*deviceclaim.ALLOCATION_MODES),)
)
_tolerations: Final = _list("tolerations", "tolerations", each(_toleration))
_derived_attributes: Final = _list(
    "derived_attributes",
    "derivedAttributes",
    each(
        TypeRules(
            (
                Field("name", "name", (required,), (declaredformats.fully_qualified_name,)),
                Field("expression", "expression", (required,)),
            )
        )
    ),
    limit=limits.DERIVED_ATTRIBUTES,
)
_exact_request: Final = TypeRules((_selectors, _allocation_mode, _tolerations, _derived_attributes))
_subrequest: Final = TypeRules((_class_name, _selectors, _allocation_mode, _tolerations, _derived_attributes))
_by_name: Final = key_of("name")
_first_available: Final = _list(
    "first_available",
    "firstAvailable",
    unique(_by_name),
    each(_subrequest, key=_by_name),
    limit=limits.FIRST_AVAILABLE,
)
_request: Final = TypeRules((Field("exactly", "exactly", (optional_pointer,), (_exact_request,)), _first_available))
_flat_request: Final = TypeRules((_selectors, _allocation_mode, _first_available, _tolerations, _derived_attributes))
_constraint: Final = TypeRules(
    (
        _names_of_requests,
        Field("match_attribute", "matchAttribute", (optional_pointer,), (declaredformats.fully_qualified_name,)),
        Field("distinct_attribute", "distinctAttribute", (optional_pointer,), (declaredformats.fully_qualified_name,)),
    )
)


def _claim_spec(request: TypeRules, driver: Field) -> Rule:
    config = TypeRules((_names_of_requests, _opaque(driver)))
    device_claim = TypeRules(
        (
            _list("requests", "requests", unique(_by_name), each(request, key=_by_name), limit=limits.REQUESTS),
            _list("constraints", "constraints", each(_constraint), limit=limits.CONSTRAINTS),
            _list("config", "config", each(config), limit=limits.CONFIGS),
        )
    )
    return TypeRules((Field("devices", "devices", (), (device_claim,)),))


def _claim_status(driver: Field) -> TypeRules:
    result = TypeRules(
        (
            _driver(declaredformats.caseless_name, declaredformats.driver_length),
            Field("pool", "pool", (required,), (declaredformats.pool_name,)),
            _tolerations,
            *_binding,
            Field("share_id", "shareID", (optional_pointer,), (declaredformats.uuid,)),
            _operations,
        )
    )
    source = Field("source", "source", (required,), (one_of(*allocation.SOURCES),))
    config = TypeRules((source, _names_of_requests, _opaque(driver)))
    devices = TypeRules(
        (
            _list("results", "results", each(result), limit=limits.RESULTS),
            _list("config", "config", each(config), limit=limits.ALLOCATION_CONFIGS),
        )
    )
    by_device = key_of("driver", "device", "pool", "share_id")
    return TypeRules(
        (
            Field(
                "allocation",
                "allocation",
                (optional_pointer, no_modify),
                (TypeRules((Field("devices", "devices", (), (devices,)),)),),
            ),
            _list("reserved_for", "reservedFor", unique(key_of("uid")), limit=limits.RESERVED_FOR),
            _list("devices", "devices", unique(by_device), each(_device_status, key=by_device)),
        )
    )


_network_data: Final = TypeRules(
    (
        Field(
            "interface_name",
            "interfaceName",
            (optional,),
            (max_length(limits.INTERFACE_NAME_BYTES, unit="byte", origin="maxBytes"),),
        ),
        _list("ips", "ips", unique(itself), limit=limits.IPS),
        Field(
            "hardware_address",
            "hardwareAddress",
            (optional,),
            (max_length(limits.HARDWARE_ADDRESS_BYTES, unit="byte", origin="maxBytes"),),
        ),
    )
)
_device_status: Final = TypeRules(
    (
        Field("share_id", "shareID", (optional_pointer,), (declaredformats.uuid,)),
        Field("network_data", "networkData", (optional_pointer,), (_network_data,)),
    )
)


def _claim(request: TypeRules, driver: Field) -> TypeRules:
    return TypeRules(
        (
            Field("spec", "spec", (immutable,), (_claim_spec(request, driver),)),
            Field("status", "status", (), (_claim_status(driver),)),
        )
    )


def _template(request: TypeRules, driver: Field) -> TypeRules:
    spec = Field("spec", "spec", (), (_claim_spec(request, driver),))
    return TypeRules((Field("spec", "spec", (), (TypeRules((spec,)),)),))


def _class(driver: Field) -> TypeRules:
    config = _list("config", "config", each(TypeRules((_opaque(driver),))), limit=limits.CONFIGS)
    extended = Field(
        "extended_resource_name", "extendedResourceName", (optional_pointer,), (declaredformats.extended_resource,)
    )
    name = Field("name", "name", (optional,), (declaredformats.long_name,))
    return TypeRules(
        (
            Field("metadata", "metadata", (), (TypeRules((name,)),)),
            Field("spec", "spec", (), (TypeRules((_selectors, config, extended)),)),
        )
    )


_attribute: Final = TypeRules(
    rules=(
        union(
            (
                ("int_value", "int"),
                ("bool_value", "bool"),
                ("string_value", "string"),
                ("version_value", "version"),
                ("int_values", "ints"),
                ("bool_values", "bools"),
                ("string_values", "strings"),
                ("version_values", "versions"),
            )
        ),
    )
)
_counters: Final = Field("counters", "counters", (required,), (each_key(declaredformats.short_name),))
_counter_set: Final = TypeRules((Field("name", "name", (required,), (declaredformats.short_name,)), _counters))
_consumption: Final = TypeRules(
    (
        Field("counter_set", "counterSet", (required,), (declaredformats.short_name,)),
        _counters,
        Field(
            "compatibility_groups",
            "compatibilityGroups",
            (max_items(limits.COMPATIBILITY_GROUPS), optional),
            (each(declaredformats.short_name, key=itself), unique(itself)),
        ),
    )
)
_mapping: Final = TypeRules(
    rules=(union((("capacity_key", "capacityKey"), ("device_multiplier", "deviceMultiplier"))),)
)
_node_allocatable: Final = TypeRules((Field("mapping", "mapping", (optional_pointer,), (_mapping,)),))
_by_counter_set: Final = key_of("counter_set")
_device: Final = TypeRules(
    (
        _list("attributes", "attributes", each_value(_attribute)),
        _list(
            "consumes_counters",
            "consumesCounters",
            unique(_by_counter_set),
            each(_consumption, key=_by_counter_set),
            limit=limits.COUNTER_CONSUMPTIONS,
        ),
        _list("taints", "taints", each(_taint)),
        *_binding,
        _list("node_allocatable_resources", "nodeAllocatableResources", each_value(_node_allocatable)),
    )
)
_device_with_basic: Final = TypeRules((Field("basic", "basic", (optional_pointer,), (_device,)),))


def _slice(device: TypeRules, gates: feature.Gates) -> TypeRules:
    def gated(values: Values, at: Path) -> list[fielderror.FieldError] | None:
        if values.new is None or gates.on(feature.Gate.PARTITIONABLE_DEVICES_TYPE):
            return optional_pointer(values, at)
        return [fielderror.forbidden(at, "")]

    spec = TypeRules(
        (
            _list("devices", "devices", each(device)),
            _list(
                "shared_counters",
                "sharedCounters",
                unique(_by_name),
                each(_counter_set, key=_by_name),
                limit=limits.COUNTER_SETS,
            ),
            Field(
                "partition_type_attribute", "partitionTypeAttribute", (gated,), (declaredformats.fully_qualified_name,)
            ),
            _operations,
        )
    )
    return TypeRules((Field("spec", "spec", (), (spec,)),))


_taint_rule: Final = TypeRules((Field("spec", "spec", (), (TypeRules((Field("taint", "taint", (), (_taint,)),)),)),))
_mapped: Final = TypeRules((Field("name", "name", (required,)), Field("amount", "quantity", (_required_pointer,))))
_overhead: Final = TypeRules((Field("name", "name", (required,)),))
_pod_claim: Final = TypeRules(
    (
        Field("resource_claim_name", "resourceClaimName", (required,)),
        _list("containers", "containers", unique(itself)),
        _list("mapping", "mapping", unique(_by_name), each(_mapped, key=_by_name)),
        _list("overhead", "overhead", unique(_by_name), each(_overhead, key=_by_name)),
    )
)
_by_claim: Final = key_of("resource_claim_name")
_pod_claims: Final = _list(
    "node_allocatable_resource_claim_statuses",
    "nodeAllocatableResourceClaimStatuses",
    unique(_by_claim),
    each(_pod_claim, key=_by_claim),
)
_pod: Final = TypeRules((Field("status", "status", (), (TypeRules((_pod_claims,)),)),))
# The order of the two rules, and so of their messages, differs between versions.
_driver_v1: Final = _driver(declaredformats.caseless_name, declaredformats.driver_length)
_driver_beta: Final = _driver(declaredformats.driver_length, declaredformats.caseless_name)


def find(kind: str, version: str, *, gates: feature.Gates) -> TypeRules:
    """The declared rules of a kind in a version (``v1``, ``v1beta1``); a kind without any has an empty shape.

    v1alpha2 has none: its kinds only share names with later ones.
    """
    if version == "v1alpha2":
        return TypeRules()
    driver = _driver_v1 if version == "v1" else _driver_beta
    is_flat = version in ("v1beta1", "v1alpha3")
    match kind:
        case "ResourceClaim":
            return _claim(_flat_request if is_flat else _request, driver)
        case "ResourceClaimTemplate":
            return _template(_flat_request if is_flat else _request, driver)
        case "DeviceClass":
            return _class(driver)
        case "ResourceSlice":
            return _slice(_device_with_basic if is_flat else _device, gates)
        case "DeviceTaintRule":
            return _taint_rule
        case "Pod":
            return _pod
        case _:
            return TypeRules()
