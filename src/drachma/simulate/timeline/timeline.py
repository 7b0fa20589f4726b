"""Timeline: the loop that moves a cluster from event to event in virtual time.

At each moment, pods end, nodes return, jobs arrive and the cluster changes, in this order. After the end of each pod,
and after all arrivals of a moment, the scheduler places pods and queues admit jobs until nothing changes any more. Then
the next evicted pod leaves its node. A pod that is preempted, or whose node fails, is created again and starts from the
beginning. Equal events and an equal seed give an equal history.
"""

from __future__ import annotations

import collections
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import structs

from drachma import errors
from drachma.accounting import ledger, resourcenames
from drachma.api import devices as deviceapi
from drachma.api import devicetaintrule, meta, node, pod, resourceslice
from drachma.claims import reservation, wellknown
from drachma.runtime import cache
from drachma.scheduler.cycle import units
from drachma.scheduler.snapshot import kinds, nodeclass, podinfo
from drachma.scheduler.snapshot.changes import Action, Change, Resource
from drachma.simulate import nodeusage
from drachma.simulate.simulation import Placement, Refusal, Simulation
from drachma.simulate.timeline.events import (
    Arrival,
    ClusterChange,
    DeviceFault,
    Event,
    EventStream,
    JobShape,
    NodeOutage,
)
from drachma.simulate.timeline.jobrun import JobRun, RunningPod
from drachma.simulate.timeline.measures import DEVICES, EvictionRecord, Measures
from drachma.simulate.timeline.quota import Quota
from drachma.simulate.timeline.scaling import Scaling
from drachma.simulate.timeline.waitingline import WaitingLine, WaitingPod, gang_of

_MOST_ROUNDS: Final = 200
"""Rounds of admission and scheduling at one moment. More than that is a loop of evictions."""

_TYPICAL_SHAPES: Final = 5
"""Number of the most frequent shapes that fragmentation is measured with."""
_MOST_NODES: Final = 400
"""Number of nodes that fragmentation is measured on; of larger clusters, evenly chosen ones."""

_BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""Time of day at the beginning, for fields of pods of which only the order matters."""

_PREEMPTED: Final = pod.PodCondition(
    type=wellknown.DISRUPTION_TARGET, status="True", reason=wellknown.PREEMPTION_BY_SCHEDULER
)
"""Condition of pods that the scheduler evicts."""

_FOLLOWED: Final = frozenset(row.kind for row in kinds.TABLE)
"""Kinds whose changes can help waiting pods."""

_FAULT: Final = "drachma.dev/fault"
"""Key of the taint of failed devices."""

Identity = tuple[str, str, str]
"""Kind, namespace and name of an object."""

Observer = Callable[[str, float, JobRun, str], None]
"""Called with what happened (``start``, ``end`` or ``evict``), its time, the job, and the node if there is one."""


class Timeline:
    """Cluster over time."""

    def __init__(
        self,
        cluster: Simulation,
        *,
        quota: Quota | None = None,
        observer: Observer | None = None,
        scaling: Scaling | None = None,
    ) -> None:
        self.cluster: Final = cluster
        self.scaling: Final = scaling
        self.changed_objects: Final[dict[Identity, meta.Object | None]] = {}
        """Objects that events have changed, None for those that are gone."""
        self.measures: Final = Measures()
        self.jobs: Final[dict[str, JobRun]] = {}
        """Jobs that wait or run, by namespace and name."""
        self.now = 0.0
        self.endless: Final[list[float]] = []
        """Times at which evictions did not come to an end."""
        self._watched: set[str] = set()
        """Jobs that have to start before the simulation stops."""
        self._is_watching = False
        self._workloads: Final[dict[str, str]] = {}
        """Workloads of pods that were there before, by the key of the pod."""
        self.quota: Final = quota
        self._observer: Final = observer
        self.line: Final = WaitingLine(cluster, now=lambda: self.now)
        self._running: Final[dict[str, RunningPod]] = {}
        self._priorities: Final[dict[int, int]] = {}
        """Number of running pods by priority."""
        self._agenda: Final[list[tuple[float, int, RunningPod | ClusterChange]]] = []
        self._number = 0
        self._terminating: Final[collections.deque[RunningPod]] = collections.deque()
        """Evicted pods that are on their nodes still."""
        self._amounts: Final[dict[JobShape, dict[str, int]]] = {}
        self.shape_counts: Final[collections.Counter[JobShape]] = collections.Counter()
        self._count_capacity()

    # Time

    def run(
        self,
        events: Iterable[Event] | EventStream,
        *,
        until: float | None = None,
        progress: Callable[[float, Measures], None] | None = None,
        pause_after: int | None = None,
    ) -> bool:
        """Process events, which are in the order of their times, and all that follows from them.

        ``until`` ends the simulation at a time. Return True if there is a pause instead: ``pause_after`` jobs have
        arrived, and the simulation can go on with the same stream. Raises InvalidValueError if a time goes backwards.
        """
        stream = events if isinstance(events, EventStream) else EventStream(events)
        while stream.head is not None or self._has_work():
            if self._is_watching and not self._watched:
                return False
            if pause_after is not None and self.measures.arrived >= pause_after:
                return True
            time = min(stream.head.time if stream.head is not None else float("inf"), self._next_time())
            if until is not None and time > until:
                self._retry(until)
                self._advance(until)
                return False
            if time < self.now and stream.head is not None:
                raise errors.InvalidValueError(
                    f"{title(stream.head)}: its time {time:g} is before {self.now:g}, the time of an earlier event"
                )
            self._retry(time)
            self._advance(time)
            while self._agenda and self._agenda[0][0] <= time:
                if self._follow_agenda():
                    self._settle()
            while (event := stream.head) is not None and event.time <= time:
                if event.time < time:
                    raise errors.InvalidValueError(
                        f"{title(event)}: its time {event.time:g} is before {time:g}, the time of an earlier event"
                    )
                self._apply(event)
                stream.take()
            self._settle()
            if self.scaling is not None:
                self._scale(self.scaling)
            self.measures.sample(self._fragmentation)
            if progress is not None:
                progress(self.now, self.measures)
        return False

    def _has_work(self) -> bool:
        """Return True if something is planned that can change anything.

        Once no job waits or runs, checks of idle nodes do not count.
        """
        return bool(self._agenda) and (self.scaling is None or bool(self.jobs))

    def _next_time(self) -> float:
        return self._agenda[0][0] if self._agenda else float("inf")

    def _advance(self, time: float) -> None:
        self.now = time
        self.measures.advance(time)

    def _plan(self, time: float, item: RunningPod | ClusterChange) -> None:
        self._number += 1
        heapq.heappush(self._agenda, (time, self._number, item))

    def _follow_agenda(self) -> bool:
        """Do what is planned next. Return False if it has become void."""
        _, _, item = heapq.heappop(self._agenda)
        if not isinstance(item, RunningPod):
            self._change(item)
            return True
        if self._running.get(item.pod.metadata.uid) is not item:
            return False
        self._complete(item)
        return True

    def _retry(self, until: float) -> None:
        """Let the scheduler try pods again that have waited for long without a change."""
        while (time := self.line.next_time()) is not None and time < until:
            self._advance(max(time, self.now))
            self._place_all()
            self.line.skip(until)

    @property
    def agenda(self) -> list[tuple[float, RunningPod | ClusterChange]]:
        """Planned ends of pods and changes of the cluster, in their order."""
        return [
            (time, item)
            for time, _, item in sorted(self._agenda, key=lambda entry: entry[:2])
            if isinstance(item, ClusterChange) or self._running.get(item.pod.metadata.uid) is item
        ]

    def resume(
        self,
        jobs: Iterable[JobRun],
        *,
        waiting: Iterable[str],
        agenda: Iterable[tuple[float, RunningPod | ClusterChange]],
    ) -> None:
        """Take over jobs of a checkpoint: those whose pods wait for nodes, in their order, and what is planned."""
        for job in jobs:
            self.jobs[job.key] = job
            for each in job.running.values():
                self._running[each.pod.metadata.uid] = each
                self._priorities[job.shape.priority] = self._priorities.get(job.shape.priority, 0) + 1
        for key in waiting:
            self.line.add(self.jobs[key], self.jobs[key].waiting)
        for time, item in agenda:
            self._plan(time, item)

    def adopt(self, bound: pod.Pod, rest: float | None, *, shape: JobShape, workload: str = "") -> None:
        """Take over a pod that runs in the cluster already, for ``rest`` seconds more or for ever.

        When the last pod of a ``workload`` has ended, its quota is free.
        """
        job = JobRun(Arrival(self.now, str(bound.metadata.name), shape, rest))
        job.waiting.clear()
        job.started = self.now
        running_pod = RunningPod(job, 0, running_pod=bound, node=bound.spec.node_name, devices=0, now=self.now)
        job.running[0] = self._running[bound.metadata.uid] = running_pod
        self.jobs[job.key] = job
        priority = shape.priority
        self._priorities[priority] = self._priorities.get(priority, 0) + 1
        self.measures.count_pod(running_pod, self._amounts_of(shape), 1)
        if workload:
            self._workloads[job.key] = workload
        if rest is not None:
            self._plan(self.now + rest, running_pod)

    def watch(self, keys: Iterable[str]) -> None:
        """Stop running as soon as all of these jobs have started."""
        jobs = ((key, self.jobs.get(key)) for key in keys)
        self._watched = {key for key, job in jobs if job is None or job.started is None}
        self._is_watching = True

    # Events

    def _apply(self, event: Event) -> None:
        match event:
            case Arrival():
                self._arrive(event)
            case NodeOutage():
                self._fail(event)
            case DeviceFault():
                self._fault(event)
            case ClusterChange():
                self._change(event)

    def _arrive(self, arrival: Arrival) -> None:
        job = JobRun(arrival)
        if job.key in self.jobs:
            raise errors.InvalidValueError(f"{title(arrival)}: a job of this name waits or runs already")
        self.jobs[job.key] = job
        self.shape_counts[job.shape] += 1
        self.measures.count_arrival(job)
        if not job.shape.queue:
            self.line.add(job, job.waiting)
        elif self.quota is None:
            job.reason = f"there is no local queue {job.shape.queue}"
        else:
            job.reason = self.quota.submit(job, self.now)

    def _fail(self, outage: NodeOutage) -> None:
        returning: list[meta.Object] = []
        for name in outage.nodes:
            info = self.cluster.snapshot.nodes.find(name)
            if info is None:
                continue
            slices = nodeusage.own_slices(self.cluster.snapshot, name)
            returning += [info.node, *slices]
            residents = list(info.ledger.bookings)
            # The node goes first: pods that leave it must not make room for others there.
            self.cluster.remove_node(name, [str(each.metadata.name) for each in slices])
            for uid in residents:
                running_pod = self._running.get(uid)
                if running_pod is not None:
                    self._lose(running_pod, reason=outage.reason)
            self._count_node(info.ledger.allocatable, slices, -1)
            self.changed_objects.update(dict.fromkeys(map(identity_of, (info.node, *slices))))
            if self.scaling is not None:
                self.scaling.forget_node(name)
        self._count_groups()
        if outage.until is not None and returning:
            self._plan(outage.until, ClusterChange(outage.until, applied=tuple(returning)))

    def _fault(self, fault: DeviceFault) -> None:
        """Taint devices, and evict the pods that use them. The repair removes the taint."""
        rules: list[meta.Object] = []
        failed = set()
        for name, device in fault.devices:
            for each in nodeusage.own_slices(self.cluster.snapshot, name):
                if any(own.name == device for own in each.spec.devices):
                    failed.add((each.spec.driver, each.spec.pool.name, device))
                    rules.append(_fault_rule(each, device, self._number))
        self._number += 1
        for claim in list(self.cluster.snapshot.claims) if failed else ():
            results = claim.status.allocation.devices.results if claim.status.allocation is not None else ()
            if any((each.driver, each.pool, each.device) in failed for each in results):
                for user in claim.status.reserved_for:
                    running = self._running.get(str(user.uid))
                    if running is not None:
                        self._lose(running, reason="device failure")
        self._change(ClusterChange(self.now, applied=tuple(rules)))
        if fault.until is not None and rules:
            self._plan(fault.until, ClusterChange(fault.until, removed=tuple(rules)))

    def _scale(self, scaling: Scaling) -> None:
        """Add and remove nodes as the autoscaler would."""
        pods = [job.make_pod(index) for job in self.line.jobs() for index in job.waiting]
        if not scaling.is_due(self.now):
            if pods and not any(time <= scaling.next_scan for time, _, _ in self._agenda[:1]):
                self._plan(scaling.next_scan, ClusterChange(scaling.next_scan, title="autoscaler"))
            return
        for change in (*scaling.grow(self.cluster, pods, self.now), *scaling.shrink(self.cluster, self.now)):
            if change.time > self.now:
                self._plan(change.time, change)
            else:
                self._change(change)

    def _change(self, change: ClusterChange) -> None:
        for removed in change.removed:
            if isinstance(removed, node.Node):
                self._fail(NodeOutage(self.now, (str(removed.metadata.name),), None, reason="removal"))
            else:
                self.cluster.remove(removed)
                self.changed_objects[identity_of(removed)] = None
        if not change.applied and not change.removed:
            return
        are_new = all(
            not isinstance(each, node.Node) or self.cluster.snapshot.nodes.find(str(each.metadata.name)) is None
            for each in change.applied
        )
        self.cluster.add(change.applied)
        self.changed_objects.update({identity_of(each): each for each in change.applied})
        if self.quota is not None:
            self.quota.change(change.applied, change.removed, self.now)
        self._report(change)
        machines = [each for each in change.applied if isinstance(each, node.Node)]
        if are_new and machines:
            for machine in machines:
                name = str(machine.metadata.name)
                info = self.cluster.snapshot.nodes.find(name)
                assert info is not None, "it was added above"
                self._count_node(info.ledger.allocatable, nodeusage.own_slices(self.cluster.snapshot, name), 1)
                if self.scaling is not None:
                    self.scaling.note_node(machine)
            self._count_groups()
        elif any(isinstance(each, node.Node | resourceslice.ResourceSlice) for each in change.applied):
            self._count_capacity()

    # Pods

    def _settle(self) -> None:
        """Place pods and admit jobs until nothing changes, and let evicted pods leave their nodes one by one."""
        rounds = 0
        while True:
            has_evicted = self._place_all()
            admission = self._admit()
            rounds += has_evicted or admission is None
            if rounds > _MOST_ROUNDS:
                self.endless.append(self.now)
                return
            if admission is not False:
                continue
            if not self._terminating:
                return
            self._terminate(self._terminating.popleft())

    def _admit(self) -> bool | None:
        """Admit jobs and create their pods. Return True if some were admitted, None if some lost their quota."""
        if self.quota is None:
            return False
        decisions = self.quota.admit(self.now)
        for key, reason in decisions.reasons.items():
            if key in self.jobs:
                self.jobs[key].reason = reason
        for eviction in decisions.evictions:
            victim, preemptor = self.jobs.get(eviction.victim), self.jobs.get(eviction.preemptor)
            if victim is not None:
                self._stop(victim, by=preemptor, reason=eviction.reason, setting=eviction.setting)
                self.quota.requeue(victim, self.now)
        for key, shape in decisions.admitted.items():
            self.jobs[key].shape = shape
        for job, indexes in _creations([self.jobs[key] for key in decisions.admitted]):
            self.line.add(job, indexes)
            if not job.shape.is_gang or job.waiting[-1] in indexes:
                self._place_all()
        return None if decisions.evictions else bool(decisions.admitted)

    def _place_all(self) -> bool:
        """Try pods of the line while there are any to try. Return True if pods were evicted for others."""
        victims: dict[str, RunningPod] = {}
        while pods := self.line.next():
            job = pods[0].job
            gang = gang_of(job, [each.pod for each in pods]) if job.shape.is_gang else None
            outcome = self.cluster.attempt([self._with_start(each.pod) for each in pods], gang)
            if isinstance(outcome, Refusal):
                self._relieve(job, outcome, victims)
            else:
                self._place(pods, outcome)
        # The scheduler decides about all pods before the first eviction is written.
        for each in victims.values():
            self._evict(each, is_preempted=True)
        return bool(victims)

    def _with_start(self, waiting_pod: pod.Pod) -> pod.Pod:
        """Return a pod as it is if it starts now. Of equally important pods, preemption evicts the youngest."""
        start = _BEGINNING + timedelta(seconds=self.now)
        return structs.replace(waiting_pod, status=structs.replace(waiting_pod.status, start_time=start))

    def _place(self, pods: Sequence[WaitingPod], placements: Sequence[Placement]) -> None:
        """Start pods on the nodes that they got."""
        job = pods[0].job
        indexes = {each.pod.metadata.uid: each.number for each in pods}
        for placement in placements:
            index = indexes[placement.pod.metadata.uid]
            job.waiting.remove(index)
            self.measures.waiting_pods -= 1
            self._begin(self._start(job, index, placement))
        self.line.place(each.pod for each in placements)
        for placement in placements:
            self.line.wake(Change(Resource.ASSIGNED_POD, Action.ADD, None, placement.pod))
        if job.started is None and not job.waiting:
            job.started = self.now
            self.measures.count_start(job)
            self._watched.discard(job.key)

    def _begin(self, running_pod: RunningPod) -> None:
        self._observe("start", running_pod.job, running_pod.node)
        if running_pod.job.arrival.duration is not None:
            self._plan(self.now + running_pod.job.arrival.duration, running_pod)

    def _start(self, job: JobRun, index: int, placement: Placement) -> RunningPod:
        devices = sum(len(each.devices.results) for each in placement.allocations)
        running_pod = RunningPod(
            job, index, running_pod=placement.pod, node=placement.node, devices=devices, now=self.now
        )
        job.running[index] = running_pod
        self._running[running_pod.pod.metadata.uid] = running_pod
        priority = job.shape.priority
        self._priorities[priority] = self._priorities.get(priority, 0) + 1
        self.measures.count_pod(running_pod, self._amounts_of(job.shape), 1)
        return running_pod

    def _complete(self, running_pod: RunningPod) -> None:
        """End a pod at its time."""
        job = running_pod.job
        del self._running[running_pod.pod.metadata.uid]
        del job.running[running_pod.index]
        self._observe("end", job, running_pod.node)
        self._leave(running_pod)
        if self.quota is not None and job.arrival.shape.queue and not job.has_ended:
            self.quota.reclaim(job, job.shape.count - len(job.waiting) - len(job.running))
        if job.has_ended:
            del self.jobs[job.key]
            self.measures.count_end(job)
            if self.quota is not None and job.arrival.shape.queue:
                self.quota.finish(job.key)
            workload = self._workloads.pop(job.key, "")
            if workload and self.quota is not None and workload not in self._workloads.values():
                self.quota.finish(workload)

    def _leave(self, running_pod: RunningPod) -> None:
        """Remove a pod from its node, and then its claims. Each may help pods that wait."""
        bound = running_pod.pod
        priority = running_pod.job.shape.priority
        self._priorities[priority] -= 1
        if not self._priorities[priority]:
            del self._priorities[priority]
        self.measures.count_pod(running_pod, self._amounts_of(running_pod.job.shape), -1)
        self.cluster.snapshot.remove_pod(bound.metadata.uid)
        self.line.wake(Change(Resource.ASSIGNED_POD, Action.DELETE, bound, None))
        if not bound.spec.resource_claims:
            return
        self._place_all()
        for before, after in list(self.cluster.release_claims(bound)):
            if after is None:
                self.line.wake(Change(Resource.RESOURCE_CLAIM, Action.DELETE, before, None))
            else:
                claim = None if reservation.frees_devices(before, after) else cache.key_of(after)
                self.line.wake(Change(Resource.RESOURCE_CLAIM, Action.UPDATE, before, after), claim=claim)

    # Evictions

    def _relieve(self, job: JobRun, refusal: Refusal, victims: dict[str, RunningPod]) -> None:
        """Put back pods that fit nowhere, and add to the victims those that the scheduler evicts for them."""
        relief = units.Relief("")
        # Without less important pods there are no evictions, but nominations after earlier ones may end.
        if any(priority < job.shape.priority for priority in self._priorities) or self.line.is_nominated(refusal):
            relief = self.cluster.relieve(refusal)
        has_victims = False
        for victim in (victim for remedy in relief.remedies for victim in remedy.victims):
            has_victims = True
            running_pod = self._running.get(victim.metadata.uid)
            if running_pod is not None and victim.metadata.uid not in victims:
                victims[victim.metadata.uid] = running_pod
                self._record_eviction([running_pod], job, "preemption by priority", index=running_pod.index)
        if relief.nodes is not None and refusal.unit is not None:
            for member in refusal.unit.members:
                self.line.nominate(member, relief.nodes.get(member.uid, ""))
        rejectors = refusal.rejectors or frozenset(self.cluster.hints())
        self.line.refuse(refusal, rejectors, is_final=not has_victims)

    def _evict(self, running_pod: RunningPod, *, is_preempted: bool = False) -> None:
        """Let a pod terminate, perhaps because the scheduler evicts it. It leaves its node when all else is at rest."""
        bound = running_pod.pod
        del self._running[bound.metadata.uid]
        metadata = structs.replace(bound.metadata, deletion_timestamp=_BEGINNING)
        spec = structs.replace(bound.spec, node_name=running_pod.node)
        status = structs.replace(bound.status, conditions=(_PREEMPTED,)) if is_preempted else bound.status
        self.cluster.snapshot.add_pod(structs.replace(bound, metadata=metadata, spec=spec, status=status))
        self._terminating.append(running_pod)
        self._observe("evict", running_pod.job, running_pod.node)

    def _terminate(self, running_pod: RunningPod) -> None:
        """Remove an evicted pod from its node. Its controller creates it again, unless its job was stopped."""
        job = running_pod.job
        self._leave(running_pod)
        if job.running.get(running_pod.index) is running_pod:
            self._place_all()
            self._recreate(running_pod)

    def _recreate(self, running_pod: RunningPod) -> None:
        job = running_pod.job
        del job.running[running_pod.index]
        job.attempts += 1
        job.waiting.append(running_pod.index)
        self.measures.waiting_pods += 1
        self.line.add(job, [running_pod.index])

    def _lose(self, running_pod: RunningPod, *, reason: str) -> None:
        """End a pod whose node or device fails. Its controller creates it again."""
        self._record_eviction([running_pod], None, reason, index=running_pod.index)
        del self._running[running_pod.pod.metadata.uid]
        self._observe("evict", running_pod.job, running_pod.node)
        self._leave(running_pod)
        self._place_all()
        self._recreate(running_pod)

    def _stop(self, job: JobRun, *, by: JobRun | None, reason: str, setting: str) -> None:
        """Evict all pods of a job that lost its quota. It waits for quota again."""
        self._record_eviction(list(job.running.values()), by, reason, setting, job=job)
        self.line.remove(job)
        for each in list(job.running.values()):
            if each.pod.metadata.uid in self._running:
                self._evict(each)
            del job.running[each.index]
            job.waiting.append(each.index)
            self.measures.waiting_pods += 1
        job.waiting.sort()
        job.attempts += 1

    def _report(self, change: ClusterChange) -> None:
        """Try the pods again that a change of the cluster can help."""
        for each in change.applied:
            for news in kinds.row(type(each)).changes(None, each) if type(each) in _FOLLOWED else ():
                self.line.wake(news)
        for each in change.removed:
            for news in kinds.row(type(each)).changes(each, None) if type(each) in _FOLLOWED else ():
                self.line.wake(news)

    def _record_eviction(
        self,
        pods: Sequence[RunningPod],
        by: JobRun | None,
        reason: str,
        setting: str = "",
        index: int = -1,
        job: JobRun | None = None,
    ) -> None:
        job = job or pods[0].job
        job.evictions += 1
        self.measures.count_eviction(
            EvictionRecord(
                self.now,
                job.key,
                by.key if by is not None else "",
                reason,
                sum(self.now - each.started for each in pods),
                setting,
                index,
                sum((self.now - each.started) * each.devices for each in pods),
            )
        )

    # Amounts

    def _amounts_of(self, shape: JobShape) -> dict[str, int]:
        amounts = self._amounts.get(shape)
        if amounts is None:
            example = JobRun(Arrival(0, "", shape, None)).make_pod(0)
            amounts = self._amounts[shape] = dict(podinfo.PodInfo(example).demand.amounts)
        return amounts

    def _count_capacity(self) -> None:
        self.measures.capacity = {}
        snapshot = self.cluster.snapshot
        for info in snapshot.nodes:
            self._count_node(info.ledger.allocatable, nodeusage.own_slices(snapshot, info.name), 1)
        self._count_groups()

    def _count_node(
        self, allocatable: Mapping[str, int], slices: Iterable[resourceslice.ResourceSlice], sign: int
    ) -> None:
        """Count the capacity of a node that joins (``sign`` 1) or leaves (-1)."""
        capacity = self.measures.capacity
        for name, amount in allocatable.items():
            if name != resourcenames.EPHEMERAL_STORAGE:
                capacity[name] = capacity.get(name, 0) + sign * amount
        devices = sum(len(each.spec.devices) for each in slices)
        if devices:
            capacity[DEVICES] = capacity.get(DEVICES, 0) + sign * devices

    def _count_groups(self) -> None:
        if self.scaling is not None:
            self.measures.group_nodes = self.scaling.counts()

    def _fragmentation(self) -> float | None:
        """Return the share of free capacity on nodes where a typical pod lacks some resource, or None if all is used.

        The capacity is that of the scarcest resource: the one with the largest used share.
        """
        shares = {name: share for name, share in self.measures.shares().items() if name != DEVICES}
        typical = self.shape_counts.most_common(_TYPICAL_SHAPES)
        if not shares or not typical:
            return None
        scarce = max(shares, key=lambda name: shares[name])
        nodes = self.cluster.snapshot.nodes
        slots = list(nodeclass.slots(nodes.all_nodes))
        accounts = [nodes.at(slot).ledger for slot in slots[:: -(-len(slots) // _MOST_NODES) or 1]]
        free = sum(max(account.left(scarce), 0) for account in accounts)
        weights = sum(count for _, count in typical)
        lost = sum(
            count * account.left(scarce)
            for shape, count in typical
            for account in accounts
            if account.left(scarce) > 0 and ledger.lacking_resources(tuple(self._amounts_of(shape).items()), account)
        )
        return lost / weights / free if free else None

    def _observe(self, what: str, job: JobRun, where: str) -> None:
        if self._observer is not None:
            self._observer(what, self.now, job, where)


def title(event: Event) -> str:
    """Return the name of an event in messages."""
    match event:
        case Arrival():
            return f"job {event.shape.namespace}/{event.name}"
        case NodeOutage():
            return f"{event.reason} of node {', '.join(event.nodes)}"
        case DeviceFault():
            return f"failure of device {', '.join('/'.join(each) for each in event.devices)}"
        case ClusterChange():
            return f"change {event.title}"


def identity_of(each: meta.Object) -> Identity:
    """Return kind, namespace and name of an object."""
    return type(each).__name__, each.metadata.namespace or "", str(each.metadata.name)


def _creations(jobs: Iterable[JobRun]) -> Iterator[tuple[JobRun, list[int]]]:
    """Yield the pods that the controllers of jobs create at the same time: one of each job, then two, then four."""
    remainders = [(job, list(job.waiting)) for job in jobs]
    size = 1
    while remainders:
        yield from ((job, indexes[:size]) for job, indexes in remainders)
        remainders = [(job, indexes[size:]) for job, indexes in remainders if len(indexes) > size]
        size *= 2


def _fault_rule(slice_: resourceslice.ResourceSlice, device: str, number: int) -> devicetaintrule.DeviceTaintRule:
    """Return the rule that taints a failed device."""
    return devicetaintrule.DeviceTaintRule(
        metadata=meta.ObjectMeta(name=f"fault-{number}-{slice_.metadata.name}-{device}"),
        spec=devicetaintrule.DeviceTaintRuleSpec(
            device_selector=devicetaintrule.DeviceTaintSelector(
                driver=slice_.spec.driver, pool=slice_.spec.pool.name, device=device
            ),
            taint=deviceapi.DeviceTaint(key=_FAULT, effect="NoExecute"),
        ),
    )
