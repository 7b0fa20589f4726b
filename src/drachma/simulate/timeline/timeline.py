"""Timeline: the loop that moves a cluster from event to event in virtual time.

At each moment, pods end, nodes return, jobs arrive and the cluster changes, in this order. After the end of each pod,
and after all arrivals of a moment, the scheduler places pods and queues admit jobs until nothing changes any more. Then
the next evicted pod leaves its node. A pod that is preempted, or whose node fails, is created again and starts from the
beginning. Equal events and an equal seed give an equal history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from drachma import errors
from drachma.scheduler.cycle import units
from drachma.scheduler.snapshot.changes import Action, Change, Resource
from drachma.simulate.simulation import Placement, Refusal, Simulation
from drachma.simulate.timeline.agenda import NEVER, Agenda, Item
from drachma.simulate.timeline.capacity import Capacity, ShapeAmounts
from drachma.simulate.timeline.clusterevents import ClusterEvents
from drachma.simulate.timeline.events import (
    Arrival,
    ClusterChange,
    DeviceFault,
    Event,
    EventStream,
    NodeOutage,
    title,
)
from drachma.simulate.timeline.jobrun import JobRun, Resident, RunningPod
from drachma.simulate.timeline.measures import Measures
from drachma.simulate.timeline.podlifecycle import Observer, PodLifecycle
from drachma.simulate.timeline.runningpods import Residents
from drachma.simulate.timeline.scaling import Scaling
from drachma.simulate.timeline.waitingline import WaitingLine, WaitingPod, gang_of

if TYPE_CHECKING:
    from drachma.simulate.timeline.quota import Quota

_MOST_ROUNDS: Final = 200
"""Rounds of admission and scheduling at one moment. More than that is a loop of evictions."""


class Timeline:
    """Cluster over time."""

    def __init__(
        self,
        cluster: Simulation,
        *,
        quota: Quota | None = None,
        observer: Observer | None = None,
        scaling: Scaling | None = None,
        has_samples: bool = True,
    ) -> None:
        """Without samples, the capacity and the used shares of the cluster are not measured."""
        self.cluster: Final = cluster
        self.quota: Final = quota
        self.scaling: Final = scaling
        self.measures: Final = Measures()
        self.now = 0.0
        self.endless: Final[list[float]] = []
        """Times at which evictions did not come to an end."""
        self.line: Final = WaitingLine(cluster, now=lambda: self.now)
        self._watched: set[str] = set()
        """Jobs that have to start before the simulation stops."""
        self._is_watching = False
        self._agenda: Final = Agenda()
        amounts = ShapeAmounts()
        self._capacity: Final = Capacity(cluster, self.measures, amounts, scaling=scaling)
        self._has_samples: Final = has_samples
        if has_samples:
            self._capacity.count_all()
        self._pods: Final = PodLifecycle(
            cluster,
            line=self.line,
            agenda=self._agenda,
            measures=self.measures,
            amounts=amounts,
            quota=quota,
            observer=observer,
            now=lambda: self.now,
            place_all=self._place_all,
        )
        self._running: Final = self._pods.running
        self._cluster_events: Final = ClusterEvents(
            cluster,
            pods=self._pods,
            line=self.line,
            agenda=self._agenda,
            capacity=self._capacity if has_samples else None,
            quota=quota,
            scaling=scaling,
            now=lambda: self.now,
            place_all=self._place_all,
        )
        self.changed_objects: Final = self._cluster_events.changed_objects
        """Objects that events have changed, None for those that are gone."""
        self.shape_counts: Final = self._capacity.shape_counts
        """Number of jobs of each shape that have arrived."""

    @property
    def jobs(self) -> dict[str, JobRun]:
        """Jobs that wait or run, by namespace and name."""
        return self._running.all_jobs()

    def job(self, key: str) -> JobRun | None:
        """Return a job that has arrived and waits or runs, or None."""
        return self._running.jobs.get(key)

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
            time = min(stream.head.time if stream.head is not None else NEVER, self._agenda.next_time)
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
            while self._agenda.next_time <= time:
                if self._follow(self._agenda.pop()):
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
                self._cluster_events.scale(self.scaling)
            if self._has_samples:
                self.measures.sample(self._capacity.fragmentation)
            if progress is not None:
                progress(self.now, self.measures)
        return False

    def _has_work(self) -> bool:
        """Return True if something is planned that can change anything.

        Once no job waits or runs, checks of idle nodes do not count.
        """
        return bool(self._agenda) and (self.scaling is None or bool(self._running.jobs))

    def _advance(self, time: float) -> None:
        self.now = time
        self.measures.advance(time)

    def _follow(self, item: Item) -> bool:
        """Do what was planned. Return False if it has become void."""
        if isinstance(item, ClusterChange):
            self._cluster_events.change(item)
            return True
        running_pod = self._running.meet(item) if isinstance(item, Resident) else item
        if running_pod is None or not self._running.is_running(running_pod):
            return False
        self._pods.complete(running_pod)
        return True

    def _retry(self, until: float) -> None:
        """Let the scheduler try pods again that have waited for long without a change."""
        while (time := self.line.next_time()) is not None and time < until:
            self._advance(max(time, self.now))
            self._place_all()
            self.line.skip(until)

    @property
    def agenda(self) -> list[tuple[float, Item]]:
        """Planned ends of pods and changes of the cluster, in their order."""
        return [
            (time, item)
            for time, item in self._agenda.entries()
            if not isinstance(item, RunningPod) or self._running.is_running(item)
        ]

    def resume(
        self, jobs: Iterable[JobRun], *, waiting_keys: Iterable[str], agenda: Iterable[tuple[float, Item]]
    ) -> None:
        """Take over jobs of a checkpoint: those whose pods wait for nodes, in their order, and what is planned."""
        for job in jobs:
            self._running.jobs[job.key] = job
            for each in job.running.values():
                self._running.add(each)
        for key in waiting_keys:
            job = self._running.jobs[key]
            self.line.add(job, job.waiting)
        for time, item in agenda:
            self._agenda.plan(time, item)

    def adopt(self, residents: Residents, remaining_seconds: Sequence[float | None]) -> None:
        """Take over pods that run in the cluster already: each for a number of seconds from now on, or for ever."""
        self._pods.adopt(residents, remaining_seconds)

    def watch(self, keys: Iterable[str]) -> None:
        """Stop running as soon as all of these jobs have started."""
        jobs = ((key, self.job(key)) for key in keys)
        self._watched = {key for key, job in jobs if job is None or job.started is None}
        self._is_watching = True

    # Events

    def _apply(self, event: Event) -> None:
        match event:
            case Arrival():
                self._arrive(event)
            case NodeOutage():
                self._cluster_events.fail_nodes(event)
            case DeviceFault():
                self._cluster_events.fail_devices(event)
            case ClusterChange():
                self._cluster_events.change(event)

    def _arrive(self, arrival: Arrival) -> None:
        job = JobRun(arrival)
        if self._running.has_job(job.key):
            raise errors.InvalidValueError(f"{title(arrival)}: a job of this name waits or runs already")
        self._running.jobs[job.key] = job
        self.shape_counts[job.shape] += 1
        self.measures.count_arrival(job)
        if not job.shape.queue:
            self.line.add(job, job.waiting)
        elif self.quota is None:
            job.reason = f"there is no local queue {job.shape.queue}"
        else:
            job.reason = self.quota.submit(job, self.now)

    # Decisions

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
            if not self._pods.terminate_next():
                return

    def _admit(self) -> bool | None:
        """Admit jobs and create their pods. Return True if some were admitted, None if some lost their quota."""
        if self.quota is None:
            return False
        decisions = self.quota.admit(self.now)
        jobs = self._running.jobs
        for key, reason in decisions.reasons.items():
            if key in jobs:
                jobs[key].reason = reason
        for eviction in decisions.evictions:
            victim = jobs.get(eviction.victim)
            if victim is not None:
                preemptor = jobs.get(eviction.preemptor)
                self._pods.stop_job(victim, preemptor=preemptor, reason=eviction.reason, setting=eviction.setting)
                self.quota.requeue(victim, self.now)
        for key, shape in decisions.admitted.items():
            jobs[key].shape = shape
        for job, indexes in _creations([jobs[key] for key in decisions.admitted]):
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
            outcome = self.cluster.attempt([self._pods.with_start_time(each.pod) for each in pods], gang)
            if isinstance(outcome, Refusal):
                self._relieve(job, outcome, victims)
            else:
                self._place(pods, outcome)
        # The scheduler decides about all pods before the first eviction is written.
        for each in victims.values():
            self._pods.evict(each, is_preempted=True)
        return bool(victims)

    def _place(self, pods: Sequence[WaitingPod], placements: Sequence[Placement]) -> None:
        """Start pods on the nodes that they got."""
        job = pods[0].job
        indexes = {each.pod.metadata.uid: each.number for each in pods}
        for placement in placements:
            self._pods.start(job, indexes[placement.pod.metadata.uid], placement)
        self.line.place(each.pod for each in placements)
        for placement in placements:
            self.line.wake(Change(Resource.ASSIGNED_POD, Action.ADD, None, placement.pod))
        if job.started is None and not job.waiting:
            job.started = self.now
            self.measures.count_start(job)
            self._watched.discard(job.key)

    def _relieve(self, job: JobRun, refusal: Refusal, victims: dict[str, RunningPod]) -> None:
        """Put back pods that fit nowhere, and add to the victims those that the scheduler evicts for them."""
        relief = units.Relief("")
        # Without less important pods there are no evictions, but nominations after earlier ones may end.
        if self._running.has_less_important(job.shape.priority) or self.line.is_nominated(refusal):
            relief = self.cluster.relieve(refusal)
        has_victims = False
        for victim in (victim for remedy in relief.remedies for victim in remedy.victims):
            has_victims = True
            uid = victim.metadata.uid
            running_pod = self._running.get(uid)
            if running_pod is not None and uid not in victims:
                victims[uid] = running_pod
                self._pods.record_eviction(
                    running_pod.job, [running_pod], job, reason="preemption by priority", index=running_pod.index
                )
        if relief.nodes is not None and refusal.unit is not None:
            for member in refusal.unit.members:
                self.line.nominate(member, relief.nodes.get(member.uid, ""))
        rejectors = refusal.rejectors or frozenset(self.cluster.hints())
        self.line.refuse(refusal, rejectors, is_final=not has_victims)


def _creations(jobs: Iterable[JobRun]) -> Iterator[tuple[JobRun, list[int]]]:
    """Yield the pods that the controllers of jobs create at the same time: one of each job, then two, then four."""
    remainders = [(job, list(job.waiting)) for job in jobs]
    size = 1
    while remainders:
        yield from ((job, indexes[:size]) for job, indexes in remainders)
        remainders = [(job, indexes[size:]) for job, indexes in remainders if len(indexes) > size]
        size *= 2
