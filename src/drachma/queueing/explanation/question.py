"""A question about one workload: what would become of it now, were the snapshot as somebody imagines it."""

from __future__ import annotations

from datetime import datetime

from drachma import errors
from drachma.queueing.admission import flavormatching
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.admission.cycle import Entry, Status
from drachma.queueing.admission.flavorsearch import PODS
from drachma.queueing.admission.snapshot import QueueState, Snapshot
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.requests import FlavorResource
from drachma.queueing.workloads.settings import Settings
from drachma.queueing.workloads.workloadinfo import WorkloadInfo


class Question:
    """A workload that waits in an active queue, and all that may be asked about it."""

    def __init__(self, admitter: Admitter, info: WorkloadInfo, now: datetime) -> None:
        self._admitter = admitter
        self._of = info
        self.now = now

    @property
    def info(self) -> WorkloadInfo:
        """The workload, as if flavors had never been looked for: an earlier search would go on where it stopped."""
        return WorkloadInfo(
            self._of.workload, self._of.pod_sets, self._of.cluster_queue, settings=self._admitter.settings
        )

    @property
    def snapshot(self) -> Snapshot:
        return self._admitter.snapshot

    @property
    def settings(self) -> Settings:
        return self._admitter.settings

    @property
    def queue(self) -> QueueState:
        return self.snapshot.queues[self._of.cluster_queue]

    def entry(self) -> Entry:
        """What would become of it."""
        return self._admitter.consider(self.info, self.now)

    def entries(self) -> list[Entry]:
        """What would become of it, with as few pods as would do and with all of them."""
        if not (self.settings.gates.on(Gate.PARTIAL_ADMISSION) and workloadstate.can_be_partial(self._of.workload)):
            return [self.entry()]
        fewest = {
            each.name: each.count if each.min_count is None else each.min_count
            for each in self._of.workload.spec.pod_sets
        }
        scaled = tuple(each.scaled(min(each.count, fewest.get(each.name, each.count))) for each in self._of.pod_sets)
        least = WorkloadInfo(self._of.workload, scaled, self._of.cluster_queue, settings=self._admitter.settings)
        return [self._admitter.consider(least, self.now), self.entry()]

    def is_admitted(self) -> bool:
        """Whether it would be admitted at once."""
        return self.entry().status is Status.ADMITTED

    def requests(self) -> list[tuple[str, dict[str, int]]]:
        """What each pod set asks for, pods included where the queue counts them."""
        counts_pods = self.queue.group_of(PODS) is not None
        return [
            (each.name, {**each.requests, **({PODS: each.count} if counts_pods else {})}) for each in self._of.pod_sets
        ]

    def mismatch(self, pod_set: str, flavor: str) -> str | None:
        """Why pods of a set cannot use a flavor, whatever quota there is; None if they can."""
        of = self.snapshot.flavors.get(flavor)
        if of is None:
            return f"flavor {flavor} not found"
        sets = [each for each in self._of.workload.spec.pod_sets if each.name == pod_set]
        try:
            return flavormatching.mismatch(of, sets, gates=self.settings.gates)
        except errors.InvalidValueError as error:
            return str(error)

    def holders(self, keys: frozenset[FlavorResource]) -> list[WorkloadInfo]:
        """Who uses any of these in the tree of the workload's queue; those who use most first."""
        names = {node.name for node in self.queue.node.root.walk() if node.is_queue}
        using = [
            info
            for info in self.snapshot.holders.values()
            if info.cluster_queue in names and any(info.usage.get(key, 0) for key in keys)
        ]
        return sorted(using, key=lambda info: (-sum(info.usage.get(key, 0) for key in keys), info.key))
