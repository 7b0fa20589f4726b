"""The admitter: queues, quota holders and flavors in memory, and the admission cycles that run on them.

The component reports objects as they come and go, and the admitter keeps no other state. A cycle returns the new state
of each head and of each victim, and the events to record. The component writes that and reports the written objects
back; until then the decision counts as made.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from drachma.api import labelselectors, node, pod
from drachma.queueing.admission import decisionevents, feasibility, preemption, usageledger
from drachma.queueing.admission.cycle import Cycle
from drachma.queueing.admission.entry import (
    Entry,
    Head,
    Status,
    admitted_workload,
    evicted_workload,
    pending_reason,
    pending_workload,
    replaced_slice,
)
from drachma.queueing.admission.pendingqueue import PendingQueue, UsageQueue
from drachma.queueing.admission.secondpass import SecondPasses
from drachma.queueing.admission.snapshot import QueueState, Snapshot
from drachma.queueing.admission.topologies import Topologies, admitted_usage
from drachma.queueing.admission.topologyplacement import needs_second_pass
from drachma.queueing.admission.usageledger import UsageLedger
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.devices import account as deviceaccount
from drachma.queueing.devices.requests import DeviceRequests
from drachma.queueing.kinds import (
    admissioncheck,
    classes,
    clusterqueue,
    localqueue,
    resourceflavor,
    topology,
    workload,
)
from drachma.queueing.topology.devicerooms import DeviceInventory
from drachma.queueing.topology.inventory import Inventory
from drachma.queueing.workloads import (
    admissibility,
    claimsharing,
    pastusage,
    podadjustment,
    requests,
    transitions,
    workloadstate,
)
from drachma.queueing.workloads.requests import Counting
from drachma.queueing.workloads.settings import DEFAULT_SETTINGS, Settings
from drachma.queueing.workloads.workloadevents import NORMAL, WARNING, Event
from drachma.queueing.workloads.workloadinfo import WorkloadInfo
from drachma.values import labels


class CycleReport(msgspec.Struct, frozen=True):
    """Result of a cycle: the new state of every changed workload, and the events to record."""

    entries: tuple[Entry, ...]
    workloads: Mapping[str, workload.Workload]
    events: tuple[Event, ...]


class Admitter:
    """Admission in memory."""

    def __init__(
        self,
        *,
        settings: Settings = DEFAULT_SETTINGS,
        counting: Counting = requests.DEFAULT_COUNTING,
        runtime_classes: Mapping[str, classes.RuntimeClass] | None = None,
        placement: feasibility.Placement | None = None,
        devices: Callable[[Iterable[WorkloadInfo]], DeviceInventory] | None = None,
    ) -> None:
        """With a ``placement``, a workload is admitted only if its pods would find nodes.

        ``devices`` returns the devices next to those of quota holders: places on topologies must have them then.
        """
        self._device_inventory = devices
        self._settings = settings
        self.ledger = UsageLedger(settings.usage_rates) if settings.usage_rates is not None else None
        """Past usage of local queues, if queues may be ordered by it."""
        self._placement = placement
        self._counting = counting
        self._runtime_classes = runtime_classes or {}
        self._places: dict[str, admissibility.Place] = {}
        self._local_queues: dict[tuple[str, str], localqueue.LocalQueue] = {}
        self._pending: dict[str, PendingQueue] = {}
        self._selectors: dict[str, labels.Selector] = {}
        self._devices: dict[str, DeviceRequests] = {}
        self._waits_in: dict[str, str] = {}
        self._inventory = Inventory()
        self._topologies: dict[str, topology.Topology] = {}
        self._has_stale_topologies = False
        self.second_passes = SecondPasses()
        """Workloads that hold quota and have to be placed on a topology."""
        self.snapshot = Snapshot(())
        self._number = 0

    @property
    def settings(self) -> Settings:
        """Settings that decisions depend on."""
        return self._settings

    @property
    def queues(self) -> Mapping[str, PendingQueue]:
        """Pending workloads by cluster queue."""
        return self._pending

    def set_places(self, places: Mapping[str, admissibility.Place]) -> None:
        """Set the namespaces and their limit ranges."""
        self._places = dict(places)

    def set_runtime_classes(self, runtime_classes: Mapping[str, classes.RuntimeClass]) -> None:
        """Set the runtime classes, whose overhead adds to the requests of pods."""
        self._runtime_classes = runtime_classes

    @property
    def nodes(self) -> Mapping[str, node.Node]:
        """Nodes by name."""
        return self._inventory.nodes

    def set_node(self, new: node.Node) -> bool:
        """Add or update a node. Return True if it may have room for pending workloads now."""
        return self._note_nodes(is_change=self._inventory.set_node(new))

    def remove_node(self, name: str) -> bool:
        """Remove a node. Return True if it was there."""
        return self._note_nodes(is_change=self._inventory.remove_node(name))

    def _note_nodes(self, *, is_change: bool) -> bool:
        self._has_stale_topologies = self._has_stale_topologies or is_change
        return is_change

    def set_pod(self, key: str, new: pod.Pod) -> bool:
        """Count a pod outside topology aware scheduling if it runs. Return True if it left room on a node."""
        return self._inventory.set_pod(key, new)

    def remove_pod(self, key: str) -> bool:
        """Stop counting a pod. Return True if it left room on a node."""
        return self._inventory.remove_pod(key)

    def topology_queues(self) -> list[str]:
        """Return the cluster queues that have a flavor with a topology."""
        topologies = self.snapshot.topologies
        return [
            state.name
            for state in self.snapshot.states
            if any(name in topologies for group in state.groups for name in group.flavors)
        ]

    def _build_topologies(self, flavors: Iterable[resourceflavor.ResourceFlavor]) -> Topologies:
        self._has_stale_topologies = False
        return Topologies.build(flavors, self._topologies, self._inventory, gates=self._settings.gates)

    def _refresh_topologies(self) -> None:
        """Build the trees of flavors again if nodes have changed, and look up devices if places must have them."""
        if self._has_stale_topologies:
            self.snapshot.set_topologies(self._build_topologies(self.snapshot.flavors.values()))
        if self._device_inventory is not None:
            self.snapshot.topologies.devices = self._device_inventory(self.snapshot.holders.values())

    def set_queues(
        self,
        queues: Iterable[clusterqueue.ClusterQueue],
        *,
        cohorts: Iterable[clusterqueue.Cohort] = (),
        local_queues: Iterable[localqueue.LocalQueue] = (),
        flavors: Iterable[resourceflavor.ResourceFlavor] = (),
        topologies: Iterable[topology.Topology] = (),
        checks: Iterable[admissioncheck.AdmissionCheck] = (),
        inactive: Iterable[str] | None = None,
        holders: Iterable[workload.Workload] = (),
    ) -> None:
        """Set all queues, cohorts, flavors and quota holders. Pending workloads stay pending.

        ``inactive`` queues admit nothing; by default these are the queues that are stopped, or lack a flavor or the
        topology of a flavor.
        """
        queues = tuple(queues)
        by_name = {each.metadata.name: each for each in flavors}
        self._topologies = {each.metadata.name: each for each in topologies}
        self._local_queues = {(each.metadata.namespace, each.metadata.name): each for each in local_queues}
        if self.ledger is not None:
            self.ledger.set_local_queues(self._local_queues.values())
        if inactive is None:
            needs_topologies = self._settings.gates.on(Gate.TAS)
            inactive = [
                each.metadata.name
                for each in queues
                if not is_active(each, by_name, topologies=self._topologies if needs_topologies else None)
            ]
        generations = {each.name: each.generation + 1 for each in self.snapshot.states}
        self.snapshot = Snapshot(
            queues,
            cohorts,
            by_name,
            inactive=inactive,
            generations=generations,
            ledger=self.ledger,
            topologies=self._build_topologies(by_name.values()),
            checks={each.metadata.name: each for each in checks},
        )
        self.snapshot.hold(
            self.info(each, each.status.admission.cluster_queue)
            for each in holders
            if each.status.admission is not None
        )
        for state in tuple(self.snapshot.states):
            self._recount_shared_claims(state)
        self.snapshot.retire_inactive()
        self._selectors = {each.metadata.name: labelselectors.of(each.spec.namespace_selector) for each in queues}
        before = self._pending
        self._pending = {each.metadata.name: self._pending_queue(each, before) for each in queues}

    def put_queue(
        self,
        queue: clusterqueue.ClusterQueue,
        now: datetime,
        *,
        is_active: bool,
        holders: Iterable[workload.Workload] = (),
    ) -> None:
        """Add a cluster queue with its quota holders, or replace it. Searches in its cohorts start over.

        Costs the queues of its cohorts; :meth:`set_queues` costs all queues and quota holders.
        """
        name = queue.metadata.name
        trees = self._tree_queues(name)
        self.snapshot.put_queue(queue, is_active=is_active)
        state = self.snapshot.state(name)
        if state is not None:
            for each in holders:
                if workloadstate.key(each) not in self.snapshot.holders:
                    self.snapshot.add(self.info(each, name))
            self._recount_shared_claims(state)
        self._selectors[name] = labelselectors.of(queue.spec.namespace_selector)
        self._pending[name] = self._pending_queue(queue, self._pending)
        self._start_over(trees | self._tree_queues(name), now)

    def remove_queue(self, name: str, now: datetime) -> None:
        """Remove a cluster queue with its quota holders, if it is known. Searches in its cohorts start over."""
        tree = self._tree_queues(name)
        self.snapshot.remove_queue(name)
        self._selectors.pop(name, None)
        self._pending.pop(name, None)
        self._start_over(tree, now)

    def _tree_queues(self, name: str) -> dict[str, None]:
        """Return the names of all queues in the tree of a queue, including itself."""
        state = self.snapshot.state(name)
        if state is None or state.node.parent is None:
            return {name: None}
        return {each.name: None for each in state.node.root.walk() if each.is_queue}

    def _start_over(self, names: Iterable[str], now: datetime) -> None:
        """Let flavor searches start over and retry parked workloads, because quota may have become free."""
        for name in names:
            state, pending_queue = self.snapshot.state(name), self._pending.get(name)
            if state is not None:
                state.generation += 1
            if pending_queue is not None:
                pending_queue.retry(now)

    def set_local_queue(self, key: usageledger.LocalQueueKey, queue: localqueue.LocalQueue | None) -> None:
        """Add or replace a local queue, or remove it."""
        if queue is None:
            self._local_queues.pop(key, None)
        else:
            self._local_queues[key] = queue
        if self.ledger is not None:
            self.ledger.set_local_queue(key, queue)

    def _pending_queue(self, queue: clusterqueue.ClusterQueue, before: Mapping[str, PendingQueue]) -> PendingQueue:
        """Return the pending workloads of a queue: the existing ones, or a copy if the queue has another order now."""
        if self.ledger is not None and usageledger.is_by_usage(queue.spec):
            new_queue: PendingQueue = UsageQueue(queue, ledger=self.ledger, settings=self._settings)
        else:
            new_queue = PendingQueue(queue, settings=self._settings)
        old = before.get(new_queue.name)
        if old is None:
            return new_queue
        if type(old) is type(new_queue) and old.is_strict == new_queue.is_strict:
            return old
        new_queue.take(old)
        return new_queue

    def info(self, wl: workload.Workload, cluster_queue: str, devices: DeviceRequests | None = None) -> WorkloadInfo:
        """Return a workload as admission sees it, with the defaults that the API server would set in its pods."""
        admission = wl.status.admission
        adjusted = wl
        if admission is None or any(each.topology_assignment is not None for each in admission.pod_set_assignments):
            place = self._places.get(wl.metadata.namespace) or admissibility.Place()
            adjusted = podadjustment.adjust(wl, limits=place.limits, runtime_classes=self._runtime_classes)
        if admission is None:
            wl = adjusted
            if devices is not None and devices.shared:
                devices = claimsharing.unpaid_requests(devices, self._paid_shares(wl, cluster_queue, devices))
        total = requests.total(adjusted, counting=self._counting, devices=devices)
        places = admitted_usage(wl, total) if self._settings.gates.on(Gate.TAS) else ()
        if claimsharing.shares(wl) and admission is not None:
            total += claimsharing.inherited_charges(wl, self._holders(cluster_queue))
        return WorkloadInfo(wl, total, cluster_queue, settings=self._settings, topology_usage=places)

    def _holders(self, cluster_queue: str) -> Iterator[workload.Workload]:
        queue = self.snapshot.state(cluster_queue)
        return (each.workload for each in (queue.workloads.values() if queue is not None else ()))

    def _paid_shares(self, wl: workload.Workload, cluster_queue: str, devices: DeviceRequests) -> claimsharing.Shares:
        """Return the shares of claims for which another workload of the queue pays."""
        return claimsharing.paid_shares(devices, wl.metadata.namespace, self._holders(cluster_queue))

    def _recount_shared_claims(self, queue: QueueState) -> None:
        """Recompute the workloads of a queue that share claims, because another workload may pay for a claim now."""
        for info in tuple(queue.workloads.values()):
            if claimsharing.shares(info.workload):
                after = self.info(info.workload, queue.name)
                if after.usage != info.usage:
                    self.snapshot.remove(info)
                    self.snapshot.add(after)

    def hold(self, wl: workload.Workload) -> None:
        """Count a workload that holds quota, or update it."""
        admission = wl.status.admission
        key = workloadstate.key(wl)
        self.forget(key)
        queue = self.snapshot.state(admission.cluster_queue) if admission is not None else None
        if queue is None:
            return
        before = self.snapshot.holders.get(key)
        if before is not None:
            if before.workload.metadata.resource_version == wl.metadata.resource_version != "":
                return
            self.snapshot.remove(before)
        if before is not None and _counts_alike(wl, before.workload):
            info = before.with_version(wl, settings=self._settings)
        else:
            info = self.info(wl, queue.name)
        self.snapshot.add(info)
        if claimsharing.shares(wl):
            self._recount_shared_claims(queue)

    def release(self, key: str) -> None:
        """Stop counting a workload that no longer holds quota."""
        info = self.snapshot.holders.get(key)
        queue = self.snapshot.state(info.cluster_queue) if info is not None else None
        if info is None or queue is None:
            return
        self.snapshot.remove(info)
        queue.generation += 1
        if claimsharing.shares(info.workload):
            self._recount_shared_claims(queue)

    def enqueue(self, wl: workload.Workload, now: datetime, *, devices: DeviceRequests | None = None) -> None:
        """Add a pending workload to its queue, or update it. A workload without a queue is dropped."""
        key = workloadstate.key(wl)
        queue = self.queue_of(wl)
        if queue is None or self._waits_in.get(key, queue) != queue:
            self.forget(key)
        if queue is None:
            return
        if devices is not None:
            self._devices[key] = devices
        self._waits_in[key] = queue
        self._pending[queue].put(self.info(wl, queue, self._devices.get(key)), now)

    def forget(self, key: str) -> None:
        """Remove a workload that is no longer pending."""
        queue = self._pending.get(self._waits_in.pop(key, ""))
        if queue is not None:
            queue.delete(key)
        self._devices.pop(key, None)

    def queue_of(self, wl: workload.Workload) -> str | None:
        """Return the cluster queue of a workload's local queue, if both exist."""
        return self.cluster_queue_of(wl.metadata.namespace, wl.spec.queue_name)

    def cluster_queue_of(self, namespace: str, local_queue: str) -> str | None:
        """Return the cluster queue of a local queue, if both exist."""
        local = self._local_queues.get((namespace, local_queue))
        name = local.spec.cluster_queue if local is not None else None
        return name if name in self._pending else None

    def retry(self, cluster_queues: Iterable[str], now: datetime) -> int:
        """Give parked workloads another chance in all queues of the trees that contain these cluster queues.

        Returns the number of workloads. Queues in a cycle of cohorts are left out.
        """
        names: dict[str, None] = {}
        for each in cluster_queues:
            if each not in names and each not in self.snapshot.tree.circular:
                names |= {each: None, **self._tree_queues(each)}
        return sum(
            self._pending[name].retry(now, takes=functools.partial(self._takes_namespace, name)) for name in names
        )

    def _takes_namespace(self, cluster_queue: str, namespace: str) -> bool:
        place = self._places.get(namespace)
        return place is not None and self._selectors[cluster_queue].matches(place.labels)

    def run_cycle(self, now: datetime) -> CycleReport | None:
        """Run one cycle on due second passes and the heads of all active queues, or return None if there are none."""
        if not self._waits_in and not self.second_passes:
            return None
        heads = [
            Head(self.snapshot.holders[key], passes=number)
            for key, number in self.second_passes.take_due(now).items()
            if key in self.snapshot.holders
        ]
        for name, queue in self._pending.items():
            if name in self.snapshot.inactive:
                continue
            info = queue.pop()
            if info is not None:
                heads.append(Head(self._current(info), queue.is_preemptor(info)))
        if not heads:
            return None
        self._number += 1
        self._refresh_topologies()
        return self._settle(self._cycle(now).run(heads), now)

    def _current(self, info: WorkloadInfo) -> WorkloadInfo:
        """Return a pending workload with the claims that it has to pay for now."""
        devices = self._devices.get(info.key)
        if devices is None or not devices.shared:
            return info
        current = self.info(info.workload, info.cluster_queue, devices)
        current.attempt = info.attempt
        return current

    def consider(self, info: WorkloadInfo, now: datetime) -> Entry:
        """Return the decision that a workload would get now if it were the only head. Nothing changes.

        The workload must not hold quota, and must come without an attempt that is under way.
        """
        self._refresh_topologies()
        (entry,) = self._cycle(now).run([Head(info)])
        return entry

    def _cycle(self, now: datetime) -> Cycle:
        return Cycle(
            self.snapshot,
            settings=self._settings,
            now=now,
            number=self._number,
            objection=self._objection,
            obstacle=self._obstacle if self._placement is not None else None,
        )

    def _objection(self, info: WorkloadInfo) -> str | None:
        return admissibility.objection(info.workload, self._selectors[info.cluster_queue], self._places)

    def _obstacle(self, wl: workload.Workload, admitted: Sequence[workload.Workload]) -> str | None:
        assert self._placement is not None, "only called with a placement"
        holders = [*(each.workload for each in self.snapshot.holders.values()), *admitted]
        return self._placement.obstacle(wl, holders, flavors=self.snapshot.flavors)

    def _settle(self, entries: list[Entry], now: datetime) -> CycleReport:
        """Count admitted workloads, mark victims, and requeue the others."""
        changed: dict[str, workload.Workload] = {}
        events: list[Event] = []
        for entry in entries:
            key = entry.info.key
            if entry.status is Status.EVICTED:
                changed[key] = self._evict(entry, now, events)
                continue
            if entry.status is Status.ADMITTED:
                queue = self.snapshot.queues[entry.info.cluster_queue]
                after = admitted_workload(entry, queue, settings=self._settings, now=now)
                after = self._with_account(after, entry.info.cluster_queue, self._devices.pop(key, None))
                changed[key] = after
                self._charge(entry.info, queue)
                if key in self.snapshot.holders:
                    self.snapshot.remove(self.snapshot.holders[key])
                self.snapshot.add(self.info(after, entry.info.cluster_queue))
                if claimsharing.shares(after):
                    self.retry([entry.info.cluster_queue], now)
                events += decisionevents.admission_events(entry, after, now)
                if entry.replaced is not None:
                    # The slice counts until the write is observed.
                    changed[entry.replaced.info.key], event = replaced_slice(entry, entry.replaced, now)
                    events.append(event)
                continue
            for target in entry.victims if entry.requeue_reason == "PendingPreemption" else ():
                if not target.info.is_evicted and target.info.key not in changed:
                    changed[target.info.key] = self._preempt(entry, target, now, events)
            if needs_second_pass(entry.info.workload):
                self.second_passes.put(key, now, number=entry.head.passes)
                events.append(Event(key, WARNING, "SecondPassFailed", entry.message))
                continue
            after = pending_workload(entry, settings=self._settings, now=now)
            if after is not entry.info.workload:
                changed[key] = after
            events.append(Event(key, WARNING, pending_reason(entry, self._settings), entry.message))
            info = entry.info.with_version(after, settings=self._settings, attempt=entry.attempt)
            self._pending[info.cluster_queue].requeue(info, entry.requeue_reason, now, quota_reason=entry.quota_reason)
        return CycleReport(tuple(entries), changed, tuple(events))

    def local_queue_usage(self, key: usageledger.LocalQueueKey) -> pastusage.Consumed:
        """Return the usage of a local queue's admitted workloads. Costs a pass over the quota holders of its cluster
        queue.
        """
        queue = self.snapshot.state(self.cluster_queue_of(*key) or "")
        return usageledger.admitted_usage(queue.workloads.values() if queue is not None else (), key)

    def _charge(self, info: WorkloadInfo, queue: QueueState) -> None:
        """Charge an admission to past usage at once, once for each reservation of quota."""
        if self.ledger is None or info.has_reservation or not usageledger.is_by_usage(queue.spec):
            return
        covered = {name for group in queue.groups for name in group.resources}
        self.ledger.charge(info, resources=covered if self._settings.ignores_undeclared else None)

    def _with_account(
        self, wl: workload.Workload, cluster_queue: str, devices: DeviceRequests | None
    ) -> workload.Workload:
        paid = self._paid_shares(wl, cluster_queue, devices) if devices is not None and devices.shared else {}
        return deviceaccount.with_account(wl, claimsharing.unpaid_requests(devices, paid), paid=paid)

    def _evict(self, entry: Entry, now: datetime, events: list[Event]) -> workload.Workload:
        """Evict a workload whose failed node cannot be replaced. It counts until the write is observed."""
        victim = evicted_workload(entry, now)
        events.append(Event(entry.info.key, NORMAL, f"EvictedDueTo{transitions.NODE_FAILURES}", entry.message))
        self._set_version(entry.info, victim)
        return victim

    def _set_version(self, info: WorkloadInfo, wl: workload.Workload) -> None:
        """Replace a quota holder by a version with another status."""
        self.snapshot.remove(info)
        self.snapshot.add(info.with_version(wl, settings=self._settings))

    def _preempt(
        self, entry: Entry, target: preemption.Target, now: datetime, events: list[Event]
    ) -> workload.Workload:
        message = preemption.message(entry.info, target, path=self.snapshot.queues[entry.info.cluster_queue].path)
        victim = transitions.preempted(target.info.workload, reason=target.reason, message=message, now=now)
        victim = transitions.evict(victim, reason=transitions.PREEMPTED, message=message, now=now)
        events += decisionevents.preemption_events(entry.info, target, message)
        self._set_version(target.info, victim)
        return victim


def _counts_alike(wl: workload.Workload, before: workload.Workload) -> bool:
    """Return True if an admitted workload counts for the same usage as before."""
    new, old = wl.status, before.status
    return (
        new.admission == old.admission
        and new.reclaimable_pods == old.reclaimable_pods
        and wl.spec == before.spec
        and wl.metadata.annotations == before.metadata.annotations
    )


def is_active(
    queue: clusterqueue.ClusterQueue,
    flavors: Mapping[str, resourceflavor.ResourceFlavor],
    *,
    topologies: Container[str] | None = None,
) -> bool:
    """Return True if a queue admits workloads: it is not stopped, and its flavors and their topologies exist.

    Without ``topologies``, those of flavors do not matter.
    """
    if queue.spec.stop_policy in (clusterqueue.HOLD, clusterqueue.HOLD_AND_DRAIN):
        return False
    names = [flavor.name for group in queue.spec.resource_groups for flavor in group.flavors]
    if not all(name in flavors for name in names):
        return False
    needed = (flavors[name].spec.topology_name for name in names)
    return topologies is None or all(name is None or name in topologies for name in needed)
