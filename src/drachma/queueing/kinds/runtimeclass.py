"""RuntimeClass, as far as it changes what pods ask for; a partial view."""

from drachma.api import meta, pod
from drachma.api.struct import ABSENT_MAP, Struct


class Overhead(Struct, frozen=True, kw_only=True):
    """What running a pod costs beside its containers."""

    pod_fixed: pod.ResourceList = ABSENT_MAP


class RuntimeClass(meta.Object, frozen=True, kw_only=True):
    """``node.k8s.io`` RuntimeClass."""

    overhead: Overhead | None = None
