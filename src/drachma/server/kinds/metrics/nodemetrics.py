"""NodeMetrics and PodMetrics: what nodes and containers use. Nobody writes them: nodes are asked."""

from typing import Final

from drachma.server.kinds.document import DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import resources, verbs
from drachma.server.surface.apisurface import Kind

GROUP: Final = "metrics.k8s.io"
VERSION: Final = "v1beta1"

_TYPES: Final = """\
ContainerMetrics: name=str* usage=<Quantity>*
NodeMetrics: apiVersion=str kind=str metadata=ObjectMeta! timestamp=Time!* usage=<Quantity>* window=str*
PodMetrics: apiVersion=str containers=[ContainerMetrics]* kind=str metadata=ObjectMeta! timestamp=Time!* window=str*
"""
_NUMBERS: Final = """\
ContainerMetrics: name usage
NodeMetrics: metadata timestamp window usage
PodMetrics: metadata timestamp window containers
"""
_TEXTS: Final = """\
ContainerMetrics: What a container uses.
ContainerMetrics.name: The name of the container.
ContainerMetrics.usage: How much of which resource.
NodeMetrics: What a node uses.
NodeMetrics.timestamp: When that was seen.
NodeMetrics.usage: How much of which resource.
NodeMetrics.window: Over how long it was counted.
PodMetrics: What the containers of a pod use.
PodMetrics.containers: Each container.
PodMetrics.timestamp: When that was seen.
PodMetrics.window: Over how long it was counted.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.metrics.pkg.apis.metrics.v1beta1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)
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
        schemas={VERSION: _PACKAGE.object(kind)},
        storage_version=VERSION,
        traits=resources.Traits(is_measured=True, has_dependents=False),
        strategy=DocumentStrategy,
    )


KINDS: Final = (
    _kind("nodes", "NodeMetrics", namespaced=False),
    _kind("pods", "PodMetrics", namespaced=True),
)
