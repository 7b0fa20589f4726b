"""LocalQueue: the entry of a namespace to a ClusterQueue."""

from collections.abc import Mapping

from drachma.api import meta
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Int32, Struct
from drachma.queueing.kinds import clusterqueue
from drachma.values import quantity


class LocalQueueSpec(Struct, frozen=True, kw_only=True):
    """Cluster queue of the local queue, and its policies."""

    cluster_queue: str = ABSENT_TEXT
    stop_policy: str | None = None
    fair_sharing: clusterqueue.FairSharing | None = None


class AdmissionFairSharingStatus(Struct, frozen=True, kw_only=True):
    """Past usage of the queue."""

    consumed_resources: Mapping[str, quantity.Quantity] = ABSENT_MAP
    last_update: meta.Time | None = None


class LocalQueueFairSharingStatus(Struct, frozen=True, kw_only=True):
    """Share of the queue, and its past usage."""

    admission_fair_sharing_status: AdmissionFairSharingStatus | None = None


class LocalQueueStatus(Struct, frozen=True, kw_only=True):
    """Status of a local queue."""

    conditions: tuple[meta.Condition, ...] = ABSENT_TUPLE
    flavors_reservation: tuple[clusterqueue.FlavorUsage, ...] = ABSENT_TUPLE
    pending_workloads: Int32 = ABSENT_INT
    reserving_workloads: Int32 = ABSENT_INT
    admitted_workloads: Int32 = ABSENT_INT
    fair_sharing: LocalQueueFairSharingStatus | None = None


class LocalQueue(meta.Object, frozen=True, kw_only=True):
    """``kueue.x-k8s.io`` LocalQueue, namespaced; a partial view."""

    spec: LocalQueueSpec = LocalQueueSpec()
    status: LocalQueueStatus = LocalQueueStatus()
