"""Feature gates of DRA, under upstream's names.

``--feature-gates`` becomes one immutable value that validation, server, scheduler and node share. A gate that drachma
implements is on by default, including upstream's alpha gates, except for the gates in :data:`OFFERED`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

from drachma import errors


class Gate(enum.StrEnum):
    """A feature, by upstream's name if it has one."""

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
    RESOURCE_HEALTH_STATUS_MESSAGE = "ResourceHealthStatusMessage"
    RESOURCE_POOL_STATUS = "DRAResourcePoolStatus"
    SCHEDULER_FILTER_TIMEOUT = "DRASchedulerFilterTimeout"
    WORKLOAD_RESOURCE_CLAIMS = "DRAWorkloadResourceClaims"
    GENERIC_WORKLOAD = "GenericWorkload"
    TOPOLOGY_AWARE_WORKLOADS = "TopologyAwareWorkloadScheduling"
    COMPOSITE_POD_GROUP = "CompositePodGroup"
    POD_GROUP_PREEMPTION_POLICY = "PodGroupPreemptionPolicy"
    WORKLOAD_WITH_JOB = "WorkloadWithJob"
    NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
    ACCOUNTING_POLICIES = "DrachmaAccountingPolicies"
    """Our own: the accounting policies that KEP-5517 describes as a future enhancement."""
    NODE_ALLOCATABLE_QOS = "DrachmaNodeAllocatableQoS"
    """Our own: nodes include claims in a pod's quality of service, as KEP-5517 plans for later."""
    DEVICE_PREEMPTION = "DrachmaDevicePreemption"
    """Our own: preemption counts the devices of evicted pods as free; upstream's frees no devices."""
    NODE_ALLOCATABLE_QUOTA = "DrachmaNodeAllocatableQuota"
    """Our own: resource quotas count what claims add to the requests of their pods (KEP-5517); upstream's do not."""
    NODE_RESOURCE_SEARCH = "DrachmaNodeResourceSearch"
    """Our own: the search for devices goes on while the node has too little cpu, memory or huge pages for the first
    ones (KEP-5517, story 4), and exclusive devices with a capacity key count with their own capacity."""
    ABSENT_CLASS_ALTERNATIVES = "DrachmaAbsentClassAlternatives"
    """Our own: an alternative of a prioritized list whose class does not exist is not available (KEP-4816). Otherwise
    the whole list waits for the class."""
    DEVICE_CHECKS = "DrachmaDeviceChecks"
    """Our own: nodes do not prepare a device that another claim has exclusively, and pods with lost devices fail."""
    FIRST_ALPHA = "DrachmaFirstAlpha"
    """Our own: ``resource.k8s.io/v1alpha2``, the first alpha of structured parameters, in addition to v1."""


OWN: Final = frozenset(
    {
        Gate.ABSENT_CLASS_ALTERNATIVES,
        Gate.ACCOUNTING_POLICIES,
        Gate.DEVICE_CHECKS,
        Gate.DEVICE_PREEMPTION,
        Gate.FIRST_ALPHA,
        Gate.NODE_ALLOCATABLE_QOS,
        Gate.NODE_ALLOCATABLE_QUOTA,
        Gate.NODE_RESOURCE_SEARCH,
    }
)
"""Gates that upstream does not have; off by default."""

OFFERED: Final = frozenset(
    {
        Gate.GENERIC_WORKLOAD,
        Gate.WORKLOAD_RESOURCE_CLAIMS,
        Gate.TOPOLOGY_AWARE_WORKLOADS,
        Gate.COMPOSITE_POD_GROUP,
        Gate.POD_GROUP_PREEMPTION_POLICY,
        Gate.WORKLOAD_WITH_JOB,
    }
)
"""Gates of upstream that are off by default, because they change the scheduling of pods."""

_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


class Gates(msgspec.Struct, frozen=True):
    """Set of enabled features."""

    enabled: frozenset[Gate] = frozenset(Gate) - OWN - OFFERED

    def on(self, gate: Gate) -> bool:
        """Return True if the feature is on."""
        return gate in self.enabled

    @property
    def binding_conditions(self) -> bool:
        """True if binding conditions are in force, which takes two gates."""
        return self.on(Gate.DEVICE_BINDING_CONDITIONS) and self.on(Gate.RESOURCE_CLAIM_DEVICE_STATUS)

    def switched(self, settings: Mapping[str, bool]) -> Gates:
        """Return the gates with some settings changed. Raises InvalidValueError for an unknown name."""
        enabled = set(self.enabled)
        for name, is_on in settings.items():
            gate = _find(name)
            (enabled.add if is_on else enabled.discard)(gate)
        return Gates(frozenset(enabled))

    @classmethod
    def parse(cls, text: str, *, base: Gates | None = None) -> Gates:
        """Return the gates after the settings of ``Name=true,Other=false``, starting from the default or from ``base``.

        Raises:
            InvalidValueError: a setting is malformed or unknown.
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
"""All features of upstream that drachma implements."""
