"""Workload: pods that are admitted together or not at all, with the state of their admission."""

from collections.abc import Mapping
from typing import Final

from drachma.api import job, meta, pod
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Int32, Struct

ADMISSION_GATES: Final = "kueue.x-k8s.io/admission-gated-by"
"""Annotation with the names of the gates that must open before the workload is considered."""
ELASTIC: Final = "kueue.x-k8s.io/elastic-job"
"""Annotation of elastic jobs and of their workloads."""
REPLACES: Final = "kueue.x-k8s.io/workload-slice-replacement-for"
"""Annotation with the key of the workload that this one replaces."""
SLICE_NAME: Final = "kueue.x-k8s.io/workload-slice-name"
"""Annotation with the name of the first slice in a chain of replacements; pods have it too."""
JOB_UID_LABEL: Final = "kueue.x-k8s.io/job-uid"
"""Label with the uid of the workload's job."""


class TopologyConstraint(Struct, frozen=True, kw_only=True):
    """A level of a topology that slices of a pod set must stay within, and their size."""

    topology: str = ABSENT_TEXT
    size: Int32 = ABSENT_INT


class PodSetTopologyRequest(Struct, frozen=True, kw_only=True):
    """Topology request of a pod set."""

    required: str | None = None
    preferred: str | None = None
    unconstrained: bool | None = None
    pod_index_label: str | None = None
    sub_group_index_label: str | None = None
    sub_group_count: Int32 | None = None
    pod_set_group_name: str | None = None
    pod_set_slice_required_topology: str | None = None
    pod_set_slice_size: Int32 | None = None
    podset_slice_required_topology_constraints: tuple[TopologyConstraint, ...] = ABSENT_TUPLE


class PodSet(Struct, frozen=True, kw_only=True):
    """A set of equal pods."""

    name: str = ABSENT_TEXT
    template: job.PodTemplateSpec = job.PodTemplateSpec()
    count: Int32 = ABSENT_INT
    min_count: Int32 | None = None
    topology_request: PodSetTopologyRequest | None = None


class PriorityClassRef(Struct, frozen=True, kw_only=True):
    """Source of the priority."""

    group: str = ABSENT_TEXT
    kind: str = ABSENT_TEXT
    name: str = ABSENT_TEXT


class Named(Struct, frozen=True, kw_only=True):
    """A reference by name."""

    name: str = ABSENT_TEXT


class WorkloadSpec(Struct, frozen=True, kw_only=True):
    """Requested pods, and their queue."""

    pod_sets: tuple[PodSet, ...] = ABSENT_TUPLE
    queue_name: str = ABSENT_TEXT
    priority_class_ref: PriorityClassRef | None = None
    priority: Int32 | None = None
    active: bool | None = None
    maximum_execution_time_seconds: Int32 | None = None
    preemption_gates: tuple[Named, ...] = ABSENT_TUPLE


class PodSetAssignment(Struct, frozen=True, kw_only=True):
    """Flavors of a pod set, and its total usage of them."""

    name: str = ABSENT_TEXT
    flavors: Mapping[str, str] = ABSENT_MAP
    resource_usage: pod.ResourceList = ABSENT_MAP
    count: Int32 | None = None
    topology_assignment: meta.Opaque = None
    delayed_topology_request: str | None = None


class Admission(Struct, frozen=True, kw_only=True):
    """Reserved quota."""

    cluster_queue: str = ABSENT_TEXT
    pod_set_assignments: tuple[PodSetAssignment, ...] = ABSENT_TUPLE


class RequeueState(Struct, frozen=True, kw_only=True):
    """Number of requeues, and the time until which the workload stays out of its queue."""

    count: Int32 | None = None
    requeue_at: meta.Time | None = None


class ReclaimablePod(Struct, frozen=True, kw_only=True):
    """Number of pods of a set that no longer need their quota."""

    name: str = ABSENT_TEXT
    count: Int32 = ABSENT_INT


class PodSetUpdate(Struct, frozen=True, kw_only=True):
    """Changes that an admission check makes to the pods of a set."""

    name: str = ABSENT_TEXT
    labels: Mapping[str, str] = ABSENT_MAP
    annotations: Mapping[str, str] = ABSENT_MAP
    node_selector: Mapping[str, str] = ABSENT_MAP
    tolerations: tuple[pod.Toleration, ...] = ABSENT_TUPLE


class AdmissionCheckState(Struct, frozen=True, kw_only=True):
    """State of an admission check for the workload."""

    name: str = ABSENT_TEXT
    state: str = ABSENT_TEXT
    last_transition_time: meta.Time | None = None
    message: str = ABSENT_TEXT
    requeue_after_seconds: Int32 | None = None
    retry_count: Int32 | None = None
    pod_set_updates: tuple[PodSetUpdate, ...] = ABSENT_TUPLE


class PodSetRequest(Struct, frozen=True, kw_only=True):
    """Requests that a pod set was last considered with, while it has no reservation."""

    name: str = ABSENT_TEXT
    resources: pod.ResourceList = ABSENT_MAP


class EvictionCount(Struct, frozen=True, kw_only=True):
    """Number of evictions for a reason."""

    reason: str = ABSENT_TEXT
    underlying_cause: str = ABSENT_TEXT
    count: Int32 = ABSENT_INT


class SchedulingStats(Struct, frozen=True, kw_only=True):
    """History of the workload."""

    evictions: tuple[EvictionCount, ...] = ABSENT_TUPLE


class PreemptionGateState(Struct, frozen=True, kw_only=True):
    """State of a gate that can keep the workload from preempting."""

    name: str = ABSENT_TEXT
    position: str = ABSENT_TEXT
    last_transition_time: meta.Time | None = None


class WorkloadStatus(Struct, frozen=True, kw_only=True):
    """Status of a workload."""

    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE
    admission: Admission | None = None
    requeue_state: RequeueState | None = None
    reclaimable_pods: tuple[ReclaimablePod, ...] = ABSENT_TUPLE
    admission_checks: tuple[AdmissionCheckState, ...] = ABSENT_TUPLE
    resource_requests: tuple[PodSetRequest, ...] = ABSENT_TUPLE
    accumulated_past_execution_time_seconds: Int32 | None = None
    scheduling_stats: SchedulingStats | None = None
    nominated_cluster_names: tuple[str, ...] = ABSENT_TUPLE
    cluster_name: str | None = None
    preemption_gates: tuple[PreemptionGateState, ...] = ABSENT_TUPLE
    unhealthy_nodes: tuple[Named, ...] = ABSENT_TUPLE


class Workload(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` Workload, namespaced; a partial view."""

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()
