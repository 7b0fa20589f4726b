"""Feature gates of queueing, under Kueue's names and with its defaults.

The gates are one immutable value, made from ``featureGates`` of a configuration and passed to every rule that depends
on it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

from drachma import errors


class Gate(enum.StrEnum):
    """A feature that can be switched."""

    ADMISSION_FAIR_SHARING = "AdmissionFairSharing"
    ADMISSION_GATED_BY = "AdmissionGatedBy"
    ASSIGN_QUEUE_LABELS_FOR_PODS = "AssignQueueLabelsForPods"
    CLEANUP_PROVISIONING_REQUESTS = "CleanupProvisioningRequestsOnEviction"
    CONCURRENT_ADMISSION = "ConcurrentAdmission"
    CUSTOM_METRIC_LABELS = "CustomMetricLabels"
    DISABLE_WAIT_FOR_PODS_READY = "DisableWaitForPodsReady"
    DRA = "KueueDRAIntegration"
    DRA_CONSUMABLE_CAPACITY = "KueueDRAIntegrationConsumableCapacity"
    DRA_EXTENDED_RESOURCE = "KueueDRAIntegrationExtendedResource"
    DRA_PARTITIONABLE_DEVICES = "KueueDRAIntegrationPartitionableDevices"
    DRA_REJECT_WHEN_DISABLED = "KueueDRARejectWorkloadsWhenDRADisabled"
    ELASTIC_JOBS = "ElasticJobsViaWorkloadSlices"
    ELASTIC_JOBS_WITH_TAS = "ElasticJobsViaWorkloadSlicesWithTAS"
    FAIR_SHARING_PREEMPT_WITHIN_NOMINAL = "FairSharingPreemptWithinNominal"
    FAIR_SHARING_PRIORITIZE_NON_BORROWING = "FairSharingPrioritizeNonBorrowing"
    FAST_QUOTA_RELEASE = "FastQuotaReleaseInPodIntegration"
    FINISH_ORPHANED_WORKLOADS = "FinishOrphanedWorkloads"
    FLAVOR_FUNGIBILITY = "FlavorFungibility"
    LOCAL_QUEUE_METRICS = "LocalQueueMetrics"
    LWS_IMMUTABLE_GROUP_SIZE = "LWSImmutableGroupSize"
    METRICS_FOR_COHORTS = "MetricsForCohorts"
    ORCHESTRATED_PREEMPTION = "MultiKueueOrchestratedPreemption"
    PARTIAL_ADMISSION = "PartialAdmission"
    POD_INTEGRATION_VALIDATE_GROUP_OWNER = "PodIntegrationValidateGroupOwner"
    PRESERVE_SCAN_PROGRESS = "FlavorFungibilityPreserveScanProgress"
    PRIORITIZE_PREEMPTOR = "PrioritizePreemptorWorkloads"
    PRIORITY_BOOST = "PriorityBoost"
    PRIORITY_CLASS_DEFAULTING = "WorkloadPriorityClassDefaulting"
    PRIORITY_SORTING_WITHIN_COHORT = "PrioritySortingWithinCohort"
    QUOTA_CHECK_STRATEGY = "QuotaCheckStrategy"
    RECLAIMABLE_PODS = "ReclaimablePods"
    RECOMPUTE_UPON_OVERLAP = "RecomputeAssignmentUponPreemptionTargetsOverlap"
    REJECT_INVALID_ON_FLAVORS = "RejectUpdatesToCQWithInvalidOnFlavors"
    SCHEDULING_EQUIVALENCE_HASHING = "SchedulingEquivalenceHashing"
    SHORT_WORKLOAD_NAMES = "ShortWorkloadNames"
    SKIP_REASSIGNMENT_FOR_PODS = "SkipReassignmentForPodOwnedWorkloads"
    TAS = "TopologyAwareScheduling"
    TAS_BALANCED = "TASBalancedPlacement"
    TAS_ENCODE_BY_HOSTNAME = "TASAssignmentsEncodingByHostnamePrefix"
    TAS_FAIL_FAST = "TASFailedNodeReplacementFailFast"
    TAS_HANDLE_OVERLAPPING_FLAVORS = "TASHandleOverlappingFlavors"
    TAS_MULTI_LAYER = "TASMultiLayerTopology"
    TAS_PROFILE_MIXED = "TASProfileMixed"
    TAS_RECOMPUTE_ASSIGNMENT = "TASRecomputeAssignmentWithinSchedulingCycle"
    TAS_REPLACE_NODES = "TASFailedNodeReplacement"
    TAS_REPLACE_ON_POD_TERMINATION = "TASReplaceNodeOnPodTermination"
    TAS_REPLACE_ON_TAINTS = "TASReplaceNodeOnNodeTaints"
    TAS_REPLACE_OVER_FIXED_TIME = "TASReplaceNodeDueToNotReadyOverFixedTime"
    TAS_RESPECT_NODE_AFFINITY = "TASRespectNodeAffinityPreferred"
    TAS_VALIDATE_SLICE_SIZE = "TASValidateWorkloadSliceSize"
    UNADMITTED_EXPLICIT_STATUS = "UnadmittedWorkloadsExplicitStatus"
    UNADMITTED_OBSERVABILITY = "UnadmittedWorkloadsObservability"
    VALIDATE_NON_NEGATIVE = "WorkloadValidateResourcesAreNonNegative"
    VALIDATE_POD_SET_METADATA = "WorkloadValidationForPodSetMetadata"
    VALIDATE_RAY_UPDATES = "ValidateRayAndSparkJobUpdates"
    WORKLOAD_IDENTIFIER_ANNOTATIONS = "WorkloadIdentifierAnnotations"


OFF: Final = frozenset({
    Gate.CONCURRENT_ADMISSION, Gate.CUSTOM_METRIC_LABELS, Gate.DISABLE_WAIT_FOR_PODS_READY,
    Gate.DRA_CONSUMABLE_CAPACITY, Gate.ELASTIC_JOBS_WITH_TAS, Gate.FAST_QUOTA_RELEASE,
    Gate.ORCHESTRATED_PREEMPTION, Gate.PRIORITIZE_PREEMPTOR, Gate.PRIORITY_BOOST,
    Gate.REJECT_INVALID_ON_FLAVORS, Gate.SHORT_WORKLOAD_NAMES, Gate.TAS_BALANCED,
    Gate.TAS_REPLACE_OVER_FIXED_TIME, Gate.TAS_RESPECT_NODE_AFFINITY, Gate.UNADMITTED_EXPLICIT_STATUS,
})  # fmt: skip
"""Gates that are off by default."""

WITHOUT_EFFECT: Final = frozenset({
    "DeferRayServiceFinalizationForRedisCleanup", "FailureRecoveryPolicy",
    "ManagedJobsNamespaceSelectorAlwaysRespected", "MetricForWorkloadCreationLatency",
    "MultiKueue", "MultiKueueAdaptersForCustomJobs", "MultiKueueClusterProfile",
    "MultiKueueIncrementalDispatcherConfig", "MultiKueueIncrementalDispatcherRespectConfigOrder",
    "MultiKueueKubeConfigPathValidation", "MultiKueueManagerQuotaAutomation",
    "MultiKueueRemoteSpecSync", "RemoveFinalizersWithStrictPatch", "SchedulerLibraryIntegration",
    "SkipAncestorCheckForDeletedWorkloads", "SparkApplicationIntegration",
    "TASCacheNodeMatchResults",
    "TASCacheTopologyTree", "TASCachingRemainingResources", "TLSOptions",
    "VectorizedResourceRequests", "VisibilityOnDemand",
    "WorkloadRequestUseMergePatch",
})  # fmt: skip
"""Gates of Kueue that are accepted and have no effect here."""

_ALIASES: Final = {"DynamicResourceAllocation": Gate.DRA}
"""Name of a gate in KEP-2941, the same as in Kubernetes."""


class Gates(msgspec.Struct, frozen=True):
    """Features that are on."""

    enabled: frozenset[Gate] = frozenset(Gate) - OFF

    def on(self, gate: Gate) -> bool:
        """Return True if the feature is on."""
        return gate in self.enabled

    def switched(self, settings: Mapping[str, bool]) -> Gates:
        """Return the gates with some switched.

        Raises:
            errors.InvalidValueError: Kueue has no gate of a name, or two names of one gate contradict each other.
        """
        enabled = set(self.enabled)
        switched: dict[Gate, bool] = {}
        for name, is_on in settings.items():
            if name in WITHOUT_EFFECT:
                continue
            gate = _ALIASES.get(name) or _find(name)
            if switched.setdefault(gate, is_on) != is_on:
                alias_name = next(alias for alias, each in _ALIASES.items() if each is gate)
                raise errors.InvalidValueError(
                    f"feature gate {gate}: is both on and off, by this name and as {alias_name}"
                )
            (enabled.add if is_on else enabled.discard)(gate)
        return Gates(frozenset(enabled))


def _find(name: str) -> Gate:
    try:
        return Gate(name)
    except ValueError:
        raise errors.InvalidValueError(f"unrecognized feature gate: {name}") from None


DEFAULT: Final = Gates()
"""Kueue's defaults."""
