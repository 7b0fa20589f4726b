"""NodeMetrics and PodMetrics: resource usage, read from nodes on request and never stored."""

from typing import Final

from drachma.server.kinds.document import DocumentStrategy
from drachma.server.surface import resources, verbs
from drachma.server.surface.apisurface import Kind

GROUP: Final = "metrics.k8s.io"
VERSION: Final = "v1beta1"

_READS: Final = (verbs.GET, verbs.LIST)


def _kind(plural: str, kind: str, *, namespaced: bool) -> Kind:
    return Kind(
        group=GROUP,
        versions=(VERSION,),
        plural=plural,
        kind=kind,
        singular_name=kind,
        namespaced=namespaced,
        verbs=_READS,
        storage_version=VERSION,
        traits=resources.Traits(is_measured=True, has_dependents=False),
        strategy=DocumentStrategy,
    )


KINDS: Final = (
    _kind("nodes", "NodeMetrics", namespaced=False),
    _kind("pods", "PodMetrics", namespaced=True),
)
