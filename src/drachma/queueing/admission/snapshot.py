"""The snapshot that decisions are based on: queues, cohorts, flavors, and the workloads that hold quota.

A decision simulates the removal or addition of workloads and undoes that before anything else reads the snapshot. A
snapshot belongs to one decision at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

from drachma.queueing.admission import usageledger
from drachma.queueing.admission.quotatree import Node, Quota, QuotaTree
from drachma.queueing.admission.topologies import NO_TOPOLOGIES, Topologies
from drachma.queueing.admission.usageledger import UsageLedger
from drachma.queueing.kinds import admissioncheck, clusterqueue, resourceflavor
from drachma.queueing.workloads import admissibility
from drachma.queueing.workloads.requests import FlavorResource, Usage
from drachma.queueing.workloads.workloadinfo import WorkloadInfo

_NO_PREEMPTION: Final = clusterqueue.Preemption(
    reclaim_within_cohort=clusterqueue.NEVER, within_cluster_queue=clusterqueue.NEVER
)
_DEFAULT_FUNGIBILITY: Final = clusterqueue.FlavorFungibility(
    when_can_borrow=clusterqueue.MAY_STOP_SEARCH, when_can_preempt=clusterqueue.TRY_NEXT_FLAVOR
)


class Group(NamedTuple):
    """Resources that come from the same flavor."""

    resources: frozenset[str]
    flavors: tuple[str, ...]


class QueueState:
    """A cluster queue at a moment."""

    __slots__ = (
        "_groups_by_resource", "fungibility", "generation", "groups", "is_dispatched", "is_topology_only", "name",
        "node", "preemption", "provisioned_flavors", "spec", "workloads",
    )  # fmt: skip

    def __init__(self, queue: clusterqueue.ClusterQueue, node: Node, *, generation: int = 0) -> None:
        self.name = queue.metadata.name
        self.spec = queue.spec
        self.node = node
        self.generation = generation
        """Counter that grows when quota may have become free, so that a flavor search starts over."""
        self.groups = tuple(
            Group(frozenset(group.covered_resources), tuple(flavor.name for flavor in group.flavors))
            for group in queue.spec.resource_groups
        )
        self._groups_by_resource = {name: group for group in reversed(self.groups) for name in group.resources}
        self.preemption = queue.spec.preemption or _NO_PREEMPTION
        self.fungibility = queue.spec.flavor_fungibility or _DEFAULT_FUNGIBILITY
        self.workloads: dict[str, WorkloadInfo] = {}
        self.is_topology_only = False
        """True if all flavors have a topology, so that all pods are placed on one."""
        self.provisioned_flavors: frozenset[str] = frozenset()
        """Flavors whose nodes a ProvisioningRequest creates after quota is reserved."""
        self.is_dispatched = False
        """True if another cluster runs the workloads and places their pods."""

    def set_flavors(
        self,
        flavors: Mapping[str, resourceflavor.ResourceFlavor],
        checks: Mapping[str, admissioncheck.AdmissionCheck],
    ) -> None:
        """Derive the rules of placement from the flavors and admission checks that the queue names."""
        names = [name for group in self.groups for name in group.flavors]
        self.is_topology_only = all(name in flavors and flavors[name].spec.topology_name is not None for name in names)
        controllers = {
            name: (checks[name].spec.controller_name, flavor_names)
            for name, flavor_names in admissibility.check_flavors(self.spec).items()
            if name in checks
        }
        self.is_dispatched = any(name == admissioncheck.MULTI_KUEUE for name, _ in controllers.values())
        self.provisioned_flavors = frozenset(
            flavor
            for name, flavor_names in controllers.values()
            if name == admissioncheck.PROVISIONING
            for flavor in flavor_names
        )

    def group_of(self, resource: str) -> Group | None:
        """Return the group that covers a resource."""
        return self._groups_by_resource.get(resource)

    @property
    def path(self) -> str:
        """Path of the queue in the tree: ``/root/cohort/queue``."""
        above = [node.name for node in self.node.ancestors]
        return "/" + "/".join((*reversed(above), self.name))


class Snapshot:
    """State that admission decides on."""

    def __init__(
        self,
        queues: Iterable[clusterqueue.ClusterQueue],
        cohorts: Iterable[clusterqueue.Cohort] = (),
        flavors: Mapping[str, resourceflavor.ResourceFlavor] | None = None,
        *,
        inactive: Iterable[str] = (),
        generations: Mapping[str, int] | None = None,
        ledger: UsageLedger | None = None,
        topologies: Topologies = NO_TOPOLOGIES,
        checks: Mapping[str, admissioncheck.AdmissionCheck] | None = None,
    ) -> None:
        """``inactive`` queues, and those in a cycle of cohorts, admit nothing; their quota still counts.

        With a ``ledger``, past usage of local queues matters in queues that ask for it.
        """
        queues = tuple(queues)
        self.tree = QuotaTree(queues, cohorts)
        self.flavors = flavors or {}
        self._checks = checks or {}
        self.ledger = ledger
        self.topologies = topologies
        generations = generations or {}
        self.queues: dict[str, QueueState] = {}
        """Queues that admit workloads, by name."""
        self._retired: dict[str, QueueState] = {}
        self.holders: dict[str, WorkloadInfo] = {}
        """Workloads that hold quota, by key."""
        self.inactive = set(inactive)
        for queue in queues:
            name = queue.metadata.name
            node = self.tree.queues.get(name)
            if node is None:
                self.inactive.add(name)
            else:
                self._add_state(QueueState(queue, node, generation=generations.get(name, 0)))

    def _add_state(self, state: QueueState) -> None:
        state.set_flavors(self.flavors, self._checks)
        self.queues[state.name] = state

    def put_queue(self, queue: clusterqueue.ClusterQueue, *, is_active: bool) -> None:
        """Add a cluster queue, or replace it; its quota holders stay. Costs the siblings in its cohort.

        A queue in a cycle of cohorts is inactive, and its quota holders do not count.
        """
        name = queue.metadata.name
        before = self._take_queue(name)
        node = self.tree.add_queue(queue, before.node.usage if before is not None else {})
        if node is None or not is_active:
            self.inactive.add(name)
        if node is None:
            self._drop_holders(before)
            return
        state = QueueState(queue, node, generation=before.generation if before is not None else 0)
        if before is not None:
            state.workloads = before.workloads
        self._add_state(state)
        if not is_active:
            self._retire(name)

    def remove_queue(self, name: str) -> None:
        """Remove a cluster queue with its quota holders, if it is known."""
        self._drop_holders(self._take_queue(name))

    def _take_queue(self, name: str) -> QueueState | None:
        """Remove a cluster queue without its quota holders, and return it."""
        self.inactive.discard(name)
        self.tree.circular.discard(name)
        state = self.queues.pop(name, None) or self._retired.pop(name, None)
        if state is not None:
            self.tree.remove_queue(state.node)
        return state

    def _drop_holders(self, state: QueueState | None) -> None:
        for info in state.workloads.values() if state is not None else ():
            del self.holders[info.key]
            self.topologies.discount(info.topology_usage)

    def set_topologies(self, topologies: Topologies) -> None:
        """Replace the topologies, after nodes have changed. Costs a walk through all quota holders."""
        self.topologies = topologies
        for info in self.holders.values():
            topologies.count(info.topology_usage)

    def hold(self, holders: Iterable[WorkloadInfo]) -> None:
        """Count workloads that hold quota, except those of queues that do not exist."""
        for info in holders:
            if self.state(info.cluster_queue) is not None:
                self.add(info)

    def state(self, name: str) -> QueueState | None:
        """Return a queue in which usage is counted, active or not."""
        return self.queues.get(name) or self._retired.get(name)

    @property
    def states(self) -> Iterator[QueueState]:
        """Yield all queues in which usage is counted."""
        yield from self.queues.values()
        yield from self._retired.values()

    def retire_inactive(self) -> None:
        """Leave inactive queues out of searches; their usage still counts in their cohorts."""
        for name in self.inactive & self.queues.keys():
            self._retire(name)

    def _retire(self, name: str) -> None:
        self._retired[name] = self.queues.pop(name)
        self.tree.retire(name)

    def past_usage(self, info: WorkloadInfo) -> float | None:
        """Return the past usage of a holder's local queue, or None if it does not matter."""
        if self.ledger is None or not usageledger.is_by_usage(self.queues[info.cluster_queue].spec):
            return None
        return self.ledger.usage(usageledger.local_queue(info.workload))

    def add(self, info: WorkloadInfo) -> None:
        """Count a workload in its queue."""
        self._put(info)
        self.topologies.count(info.topology_usage)

    def remove(self, info: WorkloadInfo) -> None:
        """Remove a workload from its queue."""
        self._take(info)
        self.topologies.discount(info.topology_usage)

    def withdraw(self, info: WorkloadInfo) -> None:
        """Simulate that a workload does not exist, until it is put back."""
        self._take(info)
        self.topologies.remove(info.topology_usage)

    def put_back(self, info: WorkloadInfo) -> None:
        """Undo ``withdraw``."""
        self._put(info)
        self.topologies.add(info.topology_usage)

    def _put(self, info: WorkloadInfo) -> None:
        queue = self._counted(info)
        queue.workloads[info.key] = info
        self.holders[info.key] = info
        queue.node.add(info.usage)

    def _take(self, info: WorkloadInfo) -> None:
        queue = self._counted(info)
        del queue.workloads[info.key]
        del self.holders[info.key]
        queue.node.remove(info.usage)

    def _counted(self, info: WorkloadInfo) -> QueueState:
        state = self.state(info.cluster_queue)
        assert state is not None, f"{info.key}: there is no cluster queue {info.cluster_queue}"
        return state

    @contextmanager
    def without(self, workloads: Iterable[WorkloadInfo]) -> Iterator[None]:
        """Simulate that these workloads do not exist."""
        removed = tuple(workloads)
        for info in removed:
            self.withdraw(info)
        try:
            yield
        finally:
            for info in removed:
                self.put_back(info)

    @contextmanager
    def without_usage(self, workloads: Iterable[WorkloadInfo]) -> Iterator[None]:
        """Simulate that these workloads use nothing."""
        removed = tuple(workloads)
        for info in removed:
            self.queues[info.cluster_queue].node.remove(info.usage)
            self.topologies.remove(info.topology_usage)
        try:
            yield
        finally:
            for info in removed:
                self.queues[info.cluster_queue].node.add(info.usage)
                self.topologies.add(info.topology_usage)


@contextmanager
def with_usage(node: Node, usage: Usage) -> Iterator[None]:
    """Simulate additional usage of a queue."""
    node.add(usage)
    try:
        yield
    finally:
        node.remove(usage)


@contextmanager
def with_less_usage(node: Node, usage: Usage) -> Iterator[None]:
    """Simulate less usage of a queue."""
    node.remove(usage)
    try:
        yield
    finally:
        node.add(usage)


@contextmanager
def with_quota(node: Node, key: FlavorResource, quota: Quota) -> Iterator[None]:
    """Simulate another quota of a queue or cohort. Costs a walk through its tree."""
    before = node.quotas
    node.quotas = {**before, key: quota}
    node.root.settle()
    try:
        yield
    finally:
        node.quotas = before
        node.root.settle()
