"""A question about one workload: the decision that it would get now on a snapshot, or on a simulated change of it."""

from __future__ import annotations

from datetime import datetime

from drachma import errors
from drachma.queueing.admission import flavormatching, topologyrequests
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.admission.entry import Entry, Status
from drachma.queueing.admission.flavorsearch import PODS
from drachma.queueing.admission.snapshot import QueueState, Snapshot
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.requests import FlavorResource
from drachma.queueing.workloads.settings import Settings
from drachma.queueing.workloads.workloadinfo import WorkloadInfo


class Question:
    """A pending workload in an active queue."""

    def __init__(self, admitter: Admitter, info: WorkloadInfo, now: datetime) -> None:
        self._admitter = admitter
        self._of = info
        self.now = now

    @property
    def info(self) -> WorkloadInfo:
        """Workload without the progress of earlier flavor searches, so that a search starts from the beginning."""
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
        """Return the decision about the workload."""
        return self._admitter.consider(self.info, self.now)

    def entries(self) -> list[Entry]:
        """Return the decisions about the workload with its minimum counts and with all pods."""
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
        """Return True if the workload would be admitted at once."""
        return self.entry().status is Status.ADMITTED

    def requests(self) -> list[tuple[str, dict[str, int]]]:
        """Return the requests of each pod set, with pods if the queue counts them."""
        counts_pods = self.queue.group_of(PODS) is not None
        return [
            (each.name, {**each.requests, **({PODS: each.count} if counts_pods else {})}) for each in self._of.pod_sets
        ]

    def mismatch(self, pod_set: str, flavor: str) -> str | None:
        """Return the reason why pods of a set cannot use a flavor apart from quota, or None if they can."""
        flavor_object = self.snapshot.flavors.get(flavor)
        if flavor_object is None:
            return f"flavor {flavor} not found"
        sets = [each for each in self._of.workload.spec.pod_sets if each.name == pod_set]
        try:
            return flavormatching.mismatch(flavor_object, sets, topology_mismatch=self._topology_check(flavor))
        except errors.InvalidValueError as error:
            return str(error)

    def _topology_check(self, flavor: str) -> flavormatching.Check:
        group = next(group for group in self.queue.groups if flavor in group.flavors)
        return topologyrequests.check(self.queue, group, self.snapshot.topologies, gates=self.settings.gates)

    def holders(self, keys: frozenset[FlavorResource]) -> list[WorkloadInfo]:
        """Return the workloads of the queue's tree that use any of these, largest usage first."""
        names = {node.name for node in self.queue.node.root.walk() if node.is_queue}
        using = [
            info
            for info in self.snapshot.holders.values()
            if info.cluster_queue in names and any(info.usage.get(key, 0) for key in keys)
        ]
        return sorted(using, key=lambda info: (-sum(info.usage.get(key, 0) for key in keys), info.key))
