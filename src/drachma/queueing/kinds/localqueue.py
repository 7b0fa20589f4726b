"""LocalQueue: a namespace's door to a ClusterQueue."""

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_TEXT, ABSENT_TUPLE, Int32, Struct
from drachma.queueing.kinds import clusterqueue


class LocalQueueSpec(Struct, frozen=True, kw_only=True):
    """Where workloads go."""

    cluster_queue: str = ABSENT_TEXT
    stop_policy: str | None = None
    fair_sharing: clusterqueue.FairSharing | None = None


class LocalQueueStatus(Struct, frozen=True, kw_only=True):
    """What is known of the queue."""

    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE
    flavors_reservation: tuple[clusterqueue.FlavorUsage, ...] = ABSENT_TUPLE
    pending_workloads: Int32 = ABSENT_INT
    reserving_workloads: Int32 = ABSENT_INT
    admitted_workloads: Int32 = ABSENT_INT


class LocalQueue(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` LocalQueue, namespaced; a partial view."""

    spec: LocalQueueSpec = LocalQueueSpec()
    status: LocalQueueStatus = LocalQueueStatus()
