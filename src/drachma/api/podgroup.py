"""PodGroup: pods that are scheduled by one policy. A partial view."""

from drachma.api import meta
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, ZERO_INT, Int32, Struct


class GangSchedulingPolicy(Struct, frozen=True, kw_only=True):
    """All at once: so many pods at least, or none."""

    min_count: Int32 = ZERO_INT


class PodGroupSchedulingPolicy(Struct, frozen=True, kw_only=True):
    """How the pods are scheduled; without ``gang`` each by itself."""

    gang: GangSchedulingPolicy | None = None


class AllDisruptionMode(Struct, frozen=True, kw_only=True):
    """Who evicts one pod of the group evicts them all."""


class DisruptionMode(Struct, frozen=True, kw_only=True):
    """How pods of the group are evicted; without ``all`` one by one."""

    all: AllDisruptionMode | None = None


class PodGroupSpec(Struct, frozen=True, kw_only=True):
    """What the group asks for."""

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ABSENT_TEXT
    priority: Int32 | None = None


class PodGroupStatus(Struct, frozen=True, kw_only=True):
    """How far the group is."""

    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE


class PodGroup(meta.Object, frozen=True, kw_only=True):
    """``scheduling.k8s.io`` PodGroup, namespaced; a partial view."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
