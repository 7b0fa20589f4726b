"""``visibility.kueue.x-k8s.io``: who waits for cluster queues and local queues. Nothing of it is stored."""

from typing import Final

from drachma.server.kinds.document import DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import resources, verbs
from drachma.server.surface.apisurface import Kind

GROUP: Final = "visibility.kueue.x-k8s.io"
VERSIONS: Final = ("v1beta2", "v1beta1")
KIND: Final = "PendingWorkloadsSummary"
PENDING: Final = "pendingworkloads"

_TYPES: Final = """\
ClusterQueue: apiVersion=str kind=str metadata=ObjectMeta! pendingWorkloadsSummary=PendingWorkloadsSummary*
LocalQueue: apiVersion=str kind=str metadata=ObjectMeta! pendingWorkloadsSummary=PendingWorkloadsSummary*
PendingWorkload: localQueueName=str* metadata=ObjectMeta! positionInClusterQueue=int32*
  positionInLocalQueue=int32* priority=int32*
PendingWorkloadsSummary: apiVersion=str items=[PendingWorkload]* kind=str metadata=ObjectMeta!
"""
_TEXTS: Final = """\
ClusterQueue: A cluster queue, and who waits for it.
ClusterQueue.pendingWorkloadsSummary: Who waits.
LocalQueue: A local queue, and who waits by it.
LocalQueue.pendingWorkloadsSummary: Who waits.
PendingWorkload: A workload that waits.
PendingWorkload.localQueueName: The local queue that it came by.
PendingWorkload.positionInClusterQueue: How many are before it in the cluster queue.
PendingWorkload.positionInLocalQueue: How many of them came by the same local queue.
PendingWorkload.priority: How urgent it is.
PendingWorkloadsSummary: Who waits for a queue.
PendingWorkloadsSummary.items: All of them, or those that were asked for, in the order of the queue.
"""


def kinds() -> tuple[Kind, ...]:
    """A record for each sort of queue. Neither can be read itself, only what is below it."""
    packages = {
        version: notation.Types(
            f"io.x-k8s.kueue.apis.visibility.{version}", _TYPES, texts=_TEXTS, uses=(metatypes.META,)
        )
        for version in VERSIONS
    }

    def record(kind: str, *, namespaced: bool) -> Kind:
        return Kind(
            group=GROUP,
            versions=VERSIONS,
            plural=f"{kind.lower()}s",
            kind=kind,
            namespaced=namespaced,
            verbs=(),
            schemas={version: types.object(kind) for version, types in packages.items()},
            storage_version=VERSIONS[0],
            subresources=(resources.Subresource(name=PENDING, verbs=(verbs.GET,), kind=KIND),),
            traits=resources.Traits(is_measured=True, has_dependents=False),
            strategy=DocumentStrategy,
        )

    return record("ClusterQueue", namespaced=False), record("LocalQueue", namespaced=True)
