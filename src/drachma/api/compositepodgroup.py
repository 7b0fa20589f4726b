"""CompositePodGroup: groups of pods that are scheduled by one policy. A partial view."""

from drachma.api import meta, podgroup
from drachma.api.struct import ABSENT_TEXT, ZERO_INT, Int32, Struct


class CompositeGangSchedulingPolicy(Struct, frozen=True, kw_only=True):
    """Minimum number of groups that are scheduled together."""

    min_group_count: Int32 = ZERO_INT


class CompositePodGroupSchedulingPolicy(Struct, frozen=True, kw_only=True):
    """Policy of scheduling; without ``gang``, one group is enough."""

    gang: CompositeGangSchedulingPolicy | None = None


class CompositePodGroupSpec(Struct, frozen=True, kw_only=True):
    """Desired state of the composite group."""

    workload_ref: podgroup.WorkloadReference | None = None
    scheduling_policy: CompositePodGroupSchedulingPolicy = CompositePodGroupSchedulingPolicy()
    scheduling_constraints: podgroup.SchedulingConstraints | None = None
    priority_class_name: str = ABSENT_TEXT
    priority: Int32 | None = None
    preemption_policy: str | None = None
    parent_composite_pod_group_name: str | None = None


class CompositePodGroup(meta.Object, frozen=True, kw_only=True):
    """``scheduling.k8s.io`` CompositePodGroup, namespaced; a partial view."""

    spec: CompositePodGroupSpec = CompositePodGroupSpec()
