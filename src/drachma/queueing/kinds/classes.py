"""Classes that workloads and pods name: WorkloadPriorityClass, PriorityClass and RuntimeClass; partial views."""

from drachma.api import meta, pod
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, Int32, Struct


class WorkloadPriorityClass(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` WorkloadPriorityClass."""

    value: Int32 = ABSENT_INT


class PriorityClass(meta.Object, frozen=True, kw_only=True):
    """``scheduling.k8s.io`` PriorityClass. Pods that name no class get the one with ``global_default``."""

    value: Int32 = ABSENT_INT
    global_default: bool = False


class Overhead(Struct, frozen=True, kw_only=True):
    """Resources that a pod uses in addition to its containers."""

    pod_fixed: pod.ResourceList = ABSENT_MAP


class RuntimeClass(meta.Object, frozen=True, kw_only=True):
    """``node.k8s.io`` RuntimeClass, as far as it changes the requests of pods."""

    overhead: Overhead | None = None
