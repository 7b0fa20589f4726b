"""Feature gates: which of upstream's DRA features are on, under upstream's names.

One immutable value, made from ``--feature-gates`` and handed to validation, server, scheduler and node. A gate that
drachma implements is on unless it is switched off; upstream's alpha gates too, but for those that are only offered.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

from drachma import errors


class Gate(enum.StrEnum):
    """A feature, by upstream's name where it has one."""

    CORE = "DynamicResourceAllocation"
    ADMIN_ACCESS = "DRAAdminAccess"
    CONSUMABLE_CAPACITY = "DRAConsumableCapacity"
    DERIVED_ATTRIBUTES = "DRADerivedAttributes"
    DEVICE_BINDING_CONDITIONS = "DRADeviceBindingConditions"
    DEVICE_COMPATIBILITY_GROUPS = "DRADeviceCompatibilityGroups"
    DEVICE_TAINTS = "DRADeviceTaints"
    DEVICE_TAINT_RULES = "DRADeviceTaintRules"
    EXTENDED_RESOURCE = "DRAExtendedResource"
    FRACTIONAL_CAPACITY_RANGE = "DRAFractionalCapacityRange"
    LIST_TYPE_ATTRIBUTES = "DRAListTypeAttributes"
    NODE_ALLOCATABLE_RESOURCES = "DRANodeAllocatableResources"
    OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"
    PARTITIONABLE_DEVICES = "DRAPartitionableDevices"
    PARTITIONABLE_DEVICES_TYPE = "DRAPartitionableDevicesType"
    PRIORITIZED_LIST = "DRAPrioritizedList"
    RESOURCE_CLAIM_DEVICE_STATUS = "DRAResourceClaimDeviceStatus"
    GRANULAR_STATUS_AUTHORIZATION = "DRAResourceClaimGranularStatusAuthorization"
    RESOURCE_HEALTH_STATUS = "ResourceHealthStatus"
    RESOURCE_POOL_STATUS = "DRAResourcePoolStatus"
    SCHEDULER_FILTER_TIMEOUT = "DRASchedulerFilterTimeout"
    WORKLOAD_RESOURCE_CLAIMS = "DRAWorkloadResourceClaims"
    GENERIC_WORKLOAD = "GenericWorkload"
    NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
    ACCOUNTING_POLICIES = "DrachmaAccountingPolicies"
    """Our own: the accounting policies that KEP-5517 describes as a future enhancement."""
    NODE_ALLOCATABLE_QOS = "DrachmaNodeAllocatableQoS"
    """Our own: nodes count claims in what they make of a pod's quality of service, as KEP-5517 plans for later."""
    FIRST_ALPHA = "DrachmaFirstAlpha"
    """Our own: ``resource.k8s.io/v1alpha2``, the first alpha of structured parameters, beside v1."""


NOT_IMPLEMENTED: Final = frozenset({Gate.WORKLOAD_RESOURCE_CLAIMS, Gate.NODE_DECLARED_FEATURES})
"""Gates whose names are accepted and which change nothing: what they are about is stored, or does not exist here."""

OWN: Final = frozenset({Gate.ACCOUNTING_POLICIES, Gate.NODE_ALLOCATABLE_QOS, Gate.FIRST_ALPHA})
"""Gates that upstream does not have; off unless they are switched on."""

OFFERED: Final = frozenset({Gate.GENERIC_WORKLOAD})
"""Gates of upstream's that change what becomes of pods so much that they are off here unless they are switched on."""

_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


class Gates(msgspec.Struct, frozen=True):
    """The features that are on."""

    enabled: frozenset[Gate] = frozenset(Gate) - NOT_IMPLEMENTED - OWN - OFFERED

    def on(self, gate: Gate) -> bool:
        """Whether the feature is on."""
        return gate in self.enabled

    @property
    def binding_conditions(self) -> bool:
        """Whether binding conditions are looked at: that takes two gates."""
        return self.on(Gate.DEVICE_BINDING_CONDITIONS) and self.on(Gate.RESOURCE_CLAIM_DEVICE_STATUS)

    def switched(self, settings: Mapping[str, bool]) -> Gates:
        """These gates with some switched; InvalidValueError for a name that upstream does not have."""
        enabled = set(self.enabled)
        for name, wanted in settings.items():
            gate = _find(name)
            (enabled.add if wanted else enabled.discard)(gate)
        return Gates(frozenset(enabled))

    @classmethod
    def parse(cls, text: str, *, base: Gates | None = None) -> Gates:
        """The gates that ``Name=true,Other=false`` leaves on, of those that are on otherwise or of others.

        An InvalidValueError names what cannot be read.
        """
        settings: dict[str, bool] = {}
        for entry in filter(None, map(str.strip, text.split(","))):
            name, separator, value = entry.partition("=")
            if not separator:
                raise errors.InvalidValueError(f"feature gates {text!r}: missing bool value for {name}")
            if value.strip() not in _BOOLEANS:
                raise errors.InvalidValueError(f"feature gates {text!r}: invalid value of {entry}: not a boolean")
            settings[name.strip()] = _BOOLEANS[value.strip()]
        return (base or cls()).switched(settings)


def _find(name: str) -> Gate:
    try:
        return Gate(name)
    except ValueError:
        raise errors.InvalidValueError(f"unrecognized feature gate: {name}") from None


ALL: Final = Gates()
"""Everything of upstream's that drachma implements."""
