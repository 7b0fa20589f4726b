"""PodGroup: pods that are scheduled by one policy. A partial view."""

from drachma.api import meta, pod
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, ZERO_INT, Int32, Struct


class GangSchedulingPolicy(Struct, frozen=True, kw_only=True):
    """Minimum number of pods that are scheduled together."""

    min_count: Int32 = ZERO_INT


class PodGroupSchedulingPolicy(Struct, frozen=True, kw_only=True):
    """Policy of scheduling; without ``gang``, pods are scheduled one by one."""

    gang: GangSchedulingPolicy | None = None


class AllDisruptionMode(Struct, frozen=True, kw_only=True):
    """Mode in which all pods of the group are evicted together."""


class DisruptionMode(Struct, frozen=True, kw_only=True):
    """Mode of eviction; without ``all``, pods are evicted one by one."""

    all: AllDisruptionMode | None = None


class TopologyConstraint(Struct, frozen=True, kw_only=True):
    """Label of nodes; all pods go to nodes with one value of it."""

    key: str = ABSENT_TEXT


class SchedulingConstraints(Struct, frozen=True, kw_only=True):
    """Constraints on the nodes of all pods of a group together."""

    topology: tuple[TopologyConstraint, ...] = ABSENT_TUPLE


class WorkloadReference(Struct, frozen=True, kw_only=True):
    """Workload and template that a group was made from."""

    workload_name: str = ABSENT_TEXT
    template_name: str = ABSENT_TEXT


class PodGroupSpec(Struct, frozen=True, kw_only=True):
    """Desired state of the group."""

    workload_ref: WorkloadReference | None = None

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ABSENT_TEXT
    priority: Int32 | None = None
    preemption_policy: str | None = None
    resource_claims: tuple[pod.PodResourceClaim, ...] = ABSENT_TUPLE
    """Claims that the pods of the group share, if their own entries are equal."""
    scheduling_constraints: SchedulingConstraints | None = None
    parent_composite_pod_group_name: str | None = None


class PodGroupStatus(Struct, frozen=True, kw_only=True):
    """Observed state of the group."""

    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE
    resource_claim_statuses: tuple[pod.PodResourceClaimStatus, ...] = ABSENT_TUPLE


class PodGroup(meta.Object, frozen=True, kw_only=True):
    """``scheduling.k8s.io`` PodGroup, namespaced; a partial view."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
