"""LimitRange and RuntimeClass, as far as they change what pods ask for; partial views."""

from drachma.api import meta, pod
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Struct


class LimitRangeItem(Struct, frozen=True, kw_only=True):
    """Limits of pods or containers, and what is set where they say nothing."""

    type: str = ABSENT_TEXT
    max: pod.ResourceList = ABSENT_MAP
    min: pod.ResourceList = ABSENT_MAP
    default: pod.ResourceList = ABSENT_MAP
    default_request: pod.ResourceList = ABSENT_MAP


class LimitRangeSpec(Struct, frozen=True, kw_only=True):
    """All limits."""

    limits: tuple[LimitRangeItem, ...] = ABSENT_TUPLE


class LimitRange(meta.Object, frozen=True, kw_only=True):
    """Core LimitRange, namespaced; a partial view."""

    spec: LimitRangeSpec = LimitRangeSpec()


class Overhead(Struct, frozen=True, kw_only=True):
    """What running a pod costs beside its containers."""

    pod_fixed: pod.ResourceList = ABSENT_MAP


class RuntimeClass(meta.Object, frozen=True, kw_only=True):
    """``node.k8s.io`` RuntimeClass; a partial view."""

    overhead: Overhead | None = None
