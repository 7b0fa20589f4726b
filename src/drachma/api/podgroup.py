"""PodGroup: pods that are scheduled by one policy. A partial view."""

from drachma.api import meta
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


class PodGroupSpec(Struct, frozen=True, kw_only=True):
    """Desired state of the group."""

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ABSENT_TEXT
    priority: Int32 | None = None


class PodGroupStatus(Struct, frozen=True, kw_only=True):
    """Observed state of the group."""

    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE


class PodGroup(meta.Object, frozen=True, kw_only=True):
    """``scheduling.k8s.io`` PodGroup, namespaced; a partial view."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
