"""WorkloadPriorityClass, and PriorityClass of pods: a name for a number; partial views."""

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, Int32


class WorkloadPriorityClass(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` WorkloadPriorityClass."""

    value: Int32 = ABSENT_INT


class PriorityClass(meta.Object, frozen=True, kw_only=True):
    """``scheduling.k8s.io`` PriorityClass; ``global_default``: that of pods that name none."""

    value: Int32 = ABSENT_INT
    global_default: bool = False
