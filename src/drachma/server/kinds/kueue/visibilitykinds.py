"""Kinds of ``visibility.kueue.x-k8s.io``: pending workloads of queues, computed on request and never stored."""

from typing import Final

from drachma.server.kinds.document import DocumentStrategy
from drachma.server.surface import resources, verbs
from drachma.server.surface.apisurface import Kind

GROUP: Final = "visibility.kueue.x-k8s.io"
VERSIONS: Final = ("v1beta2", "v1beta1")
KIND: Final = "PendingWorkloadsSummary"
PENDING: Final = "pendingworkloads"


def kinds() -> tuple[Kind, ...]:
    """Return a record for cluster queues and one for local queues; only their subresource can be read."""

    def record(kind: str, *, namespaced: bool) -> Kind:
        return Kind(
            group=GROUP,
            versions=VERSIONS,
            plural=f"{kind.lower()}s",
            kind=kind,
            namespaced=namespaced,
            verbs=(),
            storage_version=VERSIONS[0],
            subresources=(resources.Subresource(name=PENDING, verbs=(verbs.GET,), kind=KIND),),
            traits=resources.Traits(is_measured=True, has_dependents=False),
            strategy=DocumentStrategy,
        )

    return record("ClusterQueue", namespaced=False), record("LocalQueue", namespaced=True)
