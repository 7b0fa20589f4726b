"""The admitter: queues, holders of quota and flavors in one place, and cycle after cycle on them.

It is told of objects as they come and go, and keeps nothing that does not follow from them. A cycle says what became of
each head: the workload afterwards, the victims afterwards, and what to tell about it. Whoever runs it writes that down
and tells it back; until then it counts as done.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from drachma.api import labelselectors
from drachma.queueing.admission import feasibility, preemption, usageledger
from drachma.queueing.admission.cycle import Cycle, Entry, Head, Status, admitted, waiting, waiting_reason
from drachma.queueing.admission.pendingqueue import PendingQueue
from drachma.queueing.admission.snapshot import QueueState, Snapshot
from drachma.queueing.admission.usageledger import UsageLedger
from drachma.queueing.admission.usagequeue import UsageQueue
from drachma.queueing.devices import deviceaccount
from drachma.queueing.devices.devicerequests import DeviceRequests
from drachma.queueing.kinds import clusterqueue, localqueue, resourceflavor, runtimeclass, workload
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
    """What a cycle did: every workload that changed, as it is now, and what to tell."""

    entries: tuple[Entry, ...]
    workloads: Mapping[str, workload.Workload]
    events: tuple[Event, ...]


class Admitter:
    """All of admission, in memory."""

    def __init__(
        self,
        *,
        settings: Settings = DEFAULT_SETTINGS,
        counting: Counting = requests.DEFAULT_COUNTING,
        runtime_classes: Mapping[str, runtimeclass.RuntimeClass] | None = None,
        placement: feasibility.Placement | None = None,
    ) -> None:
        """With a ``placement``, only workloads are admitted whose pods would find nodes."""
        self._settings = settings
        self.ledger = UsageLedger(settings.usage_rates) if settings.usage_rates is not None else None
        """Past usage of local queues, where queues may be ordered by it."""
        self._placement = placement
        self._counting = counting
        self._runtime_classes = runtime_classes or {}
        self._places: dict[str, admissibility.Place] = {}
        self._local_queues: dict[tuple[str, str], localqueue.LocalQueue] = {}
        self._pending: dict[str, PendingQueue] = {}
        self._selectors: dict[str, labels.Selector] = {}
        self._devices: dict[str, DeviceRequests] = {}
        self._waits_in: dict[str, str] = {}
        self.snapshot = Snapshot(())
        self._number = 0

    @property
    def settings(self) -> Settings:
        """What decisions depend on beside objects."""
        return self._settings

    @property
    def queues(self) -> Mapping[str, PendingQueue]:
        """What waits, by cluster queue."""
        return self._pending

    def set_places(self, places: Mapping[str, admissibility.Place]) -> None:
        """What there is of namespaces and limit ranges."""
        self._places = dict(places)

    def set_runtime_classes(self, runtime_classes: Mapping[str, runtimeclass.RuntimeClass]) -> None:
        """What running pods costs beside their containers."""
        self._runtime_classes = runtime_classes

    def set_queues(
        self,
        queues: Iterable[clusterqueue.ClusterQueue],
        *,
        cohorts: Iterable[clusterqueue.Cohort] = (),
        local_queues: Iterable[localqueue.LocalQueue] = (),
        flavors: Iterable[resourceflavor.ResourceFlavor] = (),
        inactive: Iterable[str] | None = None,
        holders: Iterable[workload.Workload] = (),
    ) -> None:
        """All queues, cohorts, flavors and holders of quota anew; what waits goes on waiting.

        ``inactive`` queues admit nothing: unless somebody knows better, those that are stopped or whose flavors do not
        exist.
        """
        queues = tuple(queues)
        by_name = {each.metadata.name: each for each in flavors}
        self._local_queues = {(each.metadata.namespace, each.metadata.name): each for each in local_queues}
        if self.ledger is not None:
            self.ledger.set_local_queues(self._local_queues.values())
        if inactive is None:
            inactive = [each.metadata.name for each in queues if not is_active(each, by_name)]
        generations = {each.name: each.generation + 1 for each in self.snapshot.states}
        self.snapshot = Snapshot(
            queues, cohorts, by_name, inactive=inactive, generations=generations, ledger=self.ledger
        )
        self.snapshot.hold(
            self.info(each, each.status.admission.cluster_queue)
            for each in holders
            if each.status.admission is not None
        )
        for state in tuple(self.snapshot.states):
            self._pass_on(state)
        self.snapshot.retire_inactive()
        self._selectors = {each.metadata.name: labelselectors.of(each.spec.namespace_selector) for each in queues}
        before = self._pending
        self._pending = {each.metadata.name: self._succeeding(each, before) for each in queues}

    def _succeeding(self, of: clusterqueue.ClusterQueue, before: Mapping[str, PendingQueue]) -> PendingQueue:
        """What waits for a queue that is told of again: as it was, unless it is ordered otherwise now."""
        if self.ledger is not None and usageledger.is_by_usage(of.spec):
            made: PendingQueue = UsageQueue(of, ledger=self.ledger, settings=self._settings)
        else:
            made = PendingQueue(of, settings=self._settings)
        old = before.get(made.name)
        if old is None:
            return made
        if type(old) is type(made) and old.is_strict == made.is_strict:
            return old
        made.take(old)
        return made

    def info(self, of: workload.Workload, cluster_queue: str, devices: DeviceRequests | None = None) -> WorkloadInfo:
        """A workload as admission sees it, its pods completed as the API server would."""
        if of.status.admission is None:
            place = self._places.get(of.metadata.namespace) or admissibility.Place()
            of = podadjustment.adjust(of, limits=place.limits, runtime_classes=self._runtime_classes)
            if devices is not None and devices.named:
                devices = claimsharing.due(devices, self._paid(of, cluster_queue, devices))
        total = requests.total(of, counting=self._counting, devices=devices)
        if claimsharing.shares(of) and of.status.admission is not None:
            total += claimsharing.inherited(of, self._holders(cluster_queue))
        return WorkloadInfo(of, total, cluster_queue, settings=self._settings)

    def _holders(self, cluster_queue: str) -> Iterator[workload.Workload]:
        queue = self.snapshot.state(cluster_queue)
        return (each.workload for each in (queue.workloads.values() if queue is not None else ()))

    def _paid(self, of: workload.Workload, cluster_queue: str, devices: DeviceRequests) -> claimsharing.Shares:
        """The claims that a workload names and others of its queue pay for."""
        return claimsharing.covered(devices, of.metadata.namespace, self._holders(cluster_queue))

    def _pass_on(self, queue: QueueState) -> None:
        """Who pays for shared claims of a queue may be somebody else now."""
        for info in tuple(queue.workloads.values()):
            if claimsharing.shares(info.workload):
                after = self.info(info.workload, queue.name)
                if after.usage != info.usage:
                    self.snapshot.remove(info)
                    self.snapshot.add(after)

    def hold(self, of: workload.Workload) -> None:
        """A workload has quota reserved, or still has."""
        admission = of.status.admission
        key = workloadstate.key(of)
        self.forget(key)
        queue = self.snapshot.state(admission.cluster_queue) if admission is not None else None
        if queue is None:
            return
        before = self.snapshot.holders.get(key)
        if before is not None:
            if before.workload.metadata.resource_version == of.metadata.resource_version != "":
                return
            self.snapshot.remove(before)
        if before is not None and _counts_alike(of, before.workload):
            info = before.restated(of, settings=self._settings)
        else:
            info = self.info(of, queue.name)
        self.snapshot.add(info)
        if claimsharing.shares(of):
            self._pass_on(queue)

    def release(self, key: str) -> None:
        """A workload has no quota any more."""
        info = self.snapshot.holders.get(key)
        queue = self.snapshot.state(info.cluster_queue) if info is not None else None
        if info is None or queue is None:
            return
        self.snapshot.remove(info)
        queue.generation += 1
        if claimsharing.shares(info.workload):
            self._pass_on(queue)

    def enqueue(self, of: workload.Workload, now: datetime, *, devices: DeviceRequests | None = None) -> None:
        """A workload waits; one without a queue waits nowhere."""
        key = workloadstate.key(of)
        queue = self.queue_of(of)
        if queue is None or self._waits_in.get(key, queue) != queue:
            self.forget(key)
        if queue is None:
            return
        if devices is not None:
            self._devices[key] = devices
        self._waits_in[key] = queue
        self._pending[queue].put(self.info(of, queue, self._devices.get(key)), now)

    def forget(self, key: str) -> None:
        """A workload waits no more."""
        queue = self._pending.get(self._waits_in.pop(key, ""))
        if queue is not None:
            queue.delete(key)
        self._devices.pop(key, None)

    def queue_of(self, of: workload.Workload) -> str | None:
        """The cluster queue behind a workload's local queue, if both exist."""
        return self.queue_behind(of.metadata.namespace, of.spec.queue_name)

    def queue_behind(self, namespace: str, local_queue: str) -> str | None:
        """The cluster queue behind a local queue, if both exist."""
        local = self._local_queues.get((namespace, local_queue))
        name = local.spec.cluster_queue if local is not None else None
        return name if name in self._pending else None

    def retry(self, cluster_queues: Iterable[str], now: datetime) -> int:
        """Something changed for cluster queues: parked workloads of their whole trees get another chance.

        Returns how many; none of a queue whose cohorts go in a circle.
        """
        names: dict[str, None] = {}
        for each in cluster_queues:
            if each in names or each in self.snapshot.tree.circular:
                continue
            state = self.snapshot.state(each)
            names[each] = None
            if state is not None and state.node.parent is not None:
                names.update((below.name, None) for below in state.node.root.walk() if below.is_queue)
        return sum(self._pending[name].retry(now, takes=functools.partial(self._takes, name)) for name in names)

    def _takes(self, cluster_queue: str, namespace: str) -> bool:
        place = self._places.get(namespace)
        return place is not None and self._selectors[cluster_queue].matches(place.labels)

    def run_cycle(self, now: datetime) -> CycleReport | None:
        """One cycle on the heads of all active queues; None if nothing waits."""
        heads = []
        for name, pending in self._pending.items():
            if name in self.snapshot.inactive:
                continue
            info = pending.pop()
            if info is not None:
                heads.append(Head(self._current(info), pending.is_preemptor(info)))
        if not heads:
            return None
        self._number += 1
        return self._settle(self._cycle(now).run(heads), now)

    def _current(self, info: WorkloadInfo) -> WorkloadInfo:
        """What waits, with the claims that it has to pay for now."""
        devices = self._devices.get(info.key)
        if devices is None or not devices.named:
            return info
        current = self.info(info.workload, info.cluster_queue, devices)
        current.attempt = info.attempt
        return current

    def consider(self, info: WorkloadInfo, now: datetime) -> Entry:
        """What would become of a workload if it alone were looked at now. Nothing changes by that.

        It must not hold quota, and must come without an attempt that is under way.
        """
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

    def _obstacle(self, of: workload.Workload, admitted: Sequence[workload.Workload]) -> str | None:
        assert self._placement is not None, "nobody else is asked"
        holders = [*(each.workload for each in self.snapshot.holders.values()), *admitted]
        return self._placement.obstacle(of, holders, flavors=self.snapshot.flavors)

    def _settle(self, entries: list[Entry], now: datetime) -> CycleReport:
        """Count what was admitted, mark who has to go, and put the others back."""
        changed: dict[str, workload.Workload] = {}
        events: list[Event] = []
        for entry in entries:
            key = entry.info.key
            if entry.status is Status.ADMITTED:
                queue = self.snapshot.queues[entry.info.cluster_queue]
                after = admitted(entry, queue, settings=self._settings, now=now)
                after = self._with_account(after, entry.info.cluster_queue, self._devices.pop(key, None))
                changed[key] = after
                self._charge(entry.info, queue)
                self.snapshot.add(self.info(after, entry.info.cluster_queue))
                if claimsharing.shares(after):
                    self.retry([entry.info.cluster_queue], now)
                events += _admission_events(entry, after, now)
                if entry.replaced is not None:
                    changed[entry.replaced.info.key] = self._replace(entry, entry.replaced, now, events)
                continue
            for target in entry.victims if entry.requeue_reason == "PendingPreemption" else ():
                if not target.info.is_evicted and target.info.key not in changed:
                    changed[target.info.key] = self._preempt(entry, target, now, events)
            after = waiting(entry, settings=self._settings, now=now)
            if after is not entry.info.workload:
                changed[key] = after
            events.append(Event(key, WARNING, waiting_reason(entry, self._settings), entry.message))
            info = entry.info.restated(after, settings=self._settings, attempt=entry.attempt)
            self._pending[info.cluster_queue].requeue(info, entry.requeue_reason, now, quota_reason=entry.quota_reason)
        return CycleReport(tuple(entries), changed, tuple(events))

    def in_use(self, of: usageledger.LocalQueueKey) -> pastusage.Consumed:
        """What admitted workloads of a local queue use. Costs a look at all that hold quota in its cluster queue."""
        queue = self.snapshot.state(self.queue_behind(*of) or "")
        return usageledger.admitted_usage(queue.workloads.values() if queue is not None else (), of)

    def _charge(self, info: WorkloadInfo, queue: QueueState) -> None:
        """An admission counts as past usage at once, once for every time that quota is reserved."""
        if self.ledger is None or info.has_reservation or not usageledger.is_by_usage(queue.spec):
            return
        covered = {name for group in queue.groups for name in group.resources}
        self.ledger.charge(info, resources=covered if self._settings.ignores_undeclared else None)

    def _with_account(
        self, of: workload.Workload, cluster_queue: str, devices: DeviceRequests | None
    ) -> workload.Workload:
        paid = self._paid(of, cluster_queue, devices) if devices is not None and devices.named else {}
        return deviceaccount.opened(of, claimsharing.due(devices, paid), paid=paid)

    def _replace(
        self, entry: Entry, target: preemption.Target, now: datetime, events: list[Event]
    ) -> workload.Workload:
        """A workload is over whose elastic job has a larger one; it counts until that is known."""
        metadata = entry.info.workload.metadata
        message = (
            f"Replaced to accommodate a workload (UID: {metadata.uid}, "
            f"JobUID: {metadata.labels.get(workload.JOB_UID_LABEL, '')}) due to workload slice aggregation"
        )
        events.append(Event(target.info.key, NORMAL, target.reason, message))
        return transitions.finished(target.info.workload, reason=target.reason, message=message, now=now)

    def _preempt(
        self, entry: Entry, target: preemption.Target, now: datetime, events: list[Event]
    ) -> workload.Workload:
        message = preemption.message(entry.info, target, path=self.snapshot.queues[entry.info.cluster_queue].path)
        victim = transitions.preempted(target.info.workload, reason=target.reason, message=message, now=now)
        victim = transitions.evict(victim, reason=transitions.PREEMPTED, message=message, now=now)
        priorities = preemption.priorities(entry.info, target.info)
        metadata = victim.metadata
        name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
        events += (
            Event(target.info.key, NORMAL, "EvictedDueToPreempted", message),
            Event(target.info.key, NORMAL, "Preempted", f"{message}; {priorities}"),
            Event(
                entry.info.key,
                NORMAL,
                "PreemptedWorkload",
                f"Preempted workload {name} (UID: {metadata.uid}) in ClusterQueue {target.queue.name}; {priorities}",
            ),
        )
        self.snapshot.remove(target.info)
        self.snapshot.add(target.info.restated(victim, settings=self._settings))
        return victim


def _counts_alike(of: workload.Workload, before: workload.Workload) -> bool:
    """Whether a workload that was admitted counts for what it did before."""
    new, old = of.status, before.status
    return (
        new.admission == old.admission
        and new.reclaimable_pods == old.reclaimable_pods
        and of.spec == before.spec
        and of.metadata.annotations == before.metadata.annotations
    )


def _admission_events(entry: Entry, after: workload.Workload, now: datetime) -> list[Event]:
    queue = entry.info.cluster_queue
    queued = workloadstate.queued_at(after)
    waited = round((now - queued).total_seconds()) if queued is not None else 0
    message = f"Quota reserved in ClusterQueue {queue}, wait time since queued was {waited}s"
    considered = entry.assignment.considered
    if considered:
        message += f"; Flavors considered: {considered}"
    events = [Event(entry.info.key, NORMAL, "QuotaReserved", message)]
    if workloadstate.is_admitted(after):
        message = f"Admitted by ClusterQueue {queue}, wait time since reservation was 0s"
        events.append(Event(entry.info.key, NORMAL, "Admitted", message))
    return events


def is_active(of: clusterqueue.ClusterQueue, flavors: Mapping[str, resourceflavor.ResourceFlavor]) -> bool:
    """Whether a queue admits workloads: it is not stopped, and its flavors exist."""
    if of.spec.stop_policy in (clusterqueue.HOLD, clusterqueue.HOLD_AND_DRAIN):
        return False
    return all(flavor.name in flavors for group in of.spec.resource_groups for flavor in group.flavors)
