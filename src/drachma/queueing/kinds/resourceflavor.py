"""ResourceFlavor: a kind of nodes for which quota is given."""

from collections.abc import Mapping

from drachma.api import meta, node, pod
from drachma.api.struct import ABSENT_MAP, ABSENT_TUPLE, Struct


class ResourceFlavorSpec(Struct, frozen=True, kw_only=True):
    """Labels, taints and tolerations of the flavor's nodes."""

    node_labels: Mapping[str, str] = ABSENT_MAP
    node_taints: tuple[node.Taint, ...] = ABSENT_TUPLE
    tolerations: tuple[pod.Toleration, ...] = ABSENT_TUPLE
    topology_name: str | None = None


class ResourceFlavor(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` ResourceFlavor; a partial view."""

    spec: ResourceFlavorSpec = ResourceFlavorSpec()
