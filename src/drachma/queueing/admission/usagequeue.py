"""The workloads that wait for a cluster queue which takes turns by past usage (Kueue's AdmissionFairSharing).

Workloads of the local queue that has used least come first, before anything else is compared; then the order is that of
:class:`pendingqueue.PendingQueue`. Usage changes all the time, and with it the place of all workloads of a local queue
at once. So each local queue is a group with a heap of its own, and the heaps' heads are compared when somebody asks.
"""

from __future__ import annotations

from drachma.queueing.admission import usageledger
from drachma.queueing.admission.pendingqueue import PendingQueue
from drachma.queueing.admission.usageledger import LocalQueueKey, UsageLedger
from drachma.queueing.kinds import clusterqueue
from drachma.queueing.workloads.settings import DEFAULT_SETTINGS, Settings
from drachma.queueing.workloads.workloadinfo import WorkloadInfo


class UsageQueue(PendingQueue):
    """What waits for one cluster queue, in the order of its local queues' usage."""

    def __init__(
        self, of: clusterqueue.ClusterQueue, *, ledger: UsageLedger, settings: Settings = DEFAULT_SETTINGS
    ) -> None:
        super().__init__(of, settings=settings)
        self._ledger = ledger

    def _group(self, info: WorkloadInfo) -> LocalQueueKey:
        return usageledger.local_queue(info.workload)

    def _order(self, info: WorkloadInfo) -> tuple[object, ...]:
        return (self._ledger.usage(usageledger.local_queue(info.workload)), *super()._order(info))
