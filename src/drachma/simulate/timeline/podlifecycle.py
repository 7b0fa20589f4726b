"""Life cycle of pods: they start, end, are evicted, and are created again by their controllers.

Each step keeps the cluster, the waiting line, the measures and the quota in step. A pod that the scheduler evicts, or
whose job loses its quota, terminates: it stays on its node until everything else is at rest. A pod whose node or device
fails leaves at once.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import structs

from drachma.api import pod
from drachma.claims import reservation, wellknown
from drachma.runtime import cache
from drachma.scheduler.snapshot.changes import Action, Change, Resource
from drachma.simulate.simulation import Placement, Simulation
from drachma.simulate.timeline.agenda import Agenda
from drachma.simulate.timeline.capacity import ShapeAmounts
from drachma.simulate.timeline.jobrun import JobRun, RunningPod
from drachma.simulate.timeline.measures import EvictionRecord, Measures
from drachma.simulate.timeline.runningpods import Residents, RunningPods
from drachma.simulate.timeline.waitingline import WaitingLine

if TYPE_CHECKING:
    from drachma.simulate.timeline.quota import Quota

_BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""Time of day at the beginning, for fields of pods of which only the order matters."""

_PREEMPTED: Final = pod.PodCondition(
    type=wellknown.DISRUPTION_TARGET, status="True", reason=wellknown.PREEMPTION_BY_SCHEDULER
)
"""Condition of pods that the scheduler evicts."""

Observer = Callable[[str, float, JobRun, str], None]
"""Called with what happened (``start``, ``end`` or ``evict``), its time, the job, and the node if there is one."""


class PodLifecycle:
    """Steps in the life of pods."""

    def __init__(
        self,
        cluster: Simulation,
        *,
        line: WaitingLine,
        agenda: Agenda,
        measures: Measures,
        amounts: ShapeAmounts,
        quota: Quota | None,
        observer: Observer | None,
        now: Callable[[], float],
        place_all: Callable[[], object],
    ) -> None:
        """``place_all`` lets the scheduler try all pods that a change may help."""
        self.running: Final = RunningPods(lambda resident: self._count(resident, 1))
        self._cluster: Final = cluster
        self._line: Final = line
        self._agenda: Final = agenda
        self._measures: Final = measures
        self._amounts: Final = amounts
        self._quota: Final = quota
        self._observer: Final = observer
        self._now: Final = now
        self._place_all: Final = place_all
        self._terminating: Final[collections.deque[RunningPod]] = collections.deque()
        """Evicted pods that are on their nodes still."""
        self._workload_pods: Final[collections.Counter[str]] = collections.Counter()
        """Number of residents of each workload that have not ended."""

    def adopt(self, residents: Residents, remaining_seconds: Sequence[float | None]) -> None:
        """Take over pods that run already: each for a number of seconds from now on, or None for ever.

        When the last pod of a workload has ended, its quota is free. Measures count only those that an event concerns.
        """
        now = self._now()
        self.running.adopt(residents, remaining_seconds, now)
        self._workload_pods.update(residents.workloads)
        self._agenda.plan_all(
            (now + seconds, resident)
            for resident, seconds in zip(residents.members, remaining_seconds, strict=True)
            if seconds is not None
        )

    # Start and end

    def with_start_time(self, waiting_pod: pod.Pod) -> pod.Pod:
        """Return a pod as it is if it starts now. Of equally important pods, preemption evicts the youngest."""
        start = _BEGINNING + timedelta(seconds=self._now())
        return structs.replace(waiting_pod, status=structs.replace(waiting_pod.status, start_time=start))

    def start(self, job: JobRun, index: int, placement: Placement) -> None:
        """Start a pod on the node that it got, and plan its end."""
        job.waiting.remove(index)
        self._measures.waiting_pods -= 1
        devices = sum(len(each.devices.results) for each in placement.allocations)
        running_pod = RunningPod(
            job, index, running_pod=placement.pod, node=placement.node, devices=devices, now=self._now()
        )
        job.running[index] = running_pod
        self.running.add(running_pod)
        self._count(running_pod, 1)
        self._observe("start", running_pod)
        if job.arrival.duration is not None:
            self._agenda.plan(self._now() + job.arrival.duration, running_pod)

    def complete(self, running_pod: RunningPod) -> None:
        """End a pod at its time."""
        job = running_pod.job
        self.running.stop(running_pod)
        del job.running[running_pod.index]
        self._observe("end", running_pod)
        self._leave(running_pod)
        if self._quota is not None and job.arrival.shape.queue and not job.has_ended:
            self._quota.reclaim(job, job.shape.count - len(job.waiting) - len(job.running))
        if job.has_ended:
            self._complete_job(job)

    def _complete_job(self, job: JobRun) -> None:
        del self.running.jobs[job.key]
        self._measures.count_end(job)
        if self._quota is not None and job.arrival.shape.queue:
            self._quota.finish(job.key)
        if job.workload:
            self._workload_pods[job.workload] -= 1
            if self._quota is not None and not self._workload_pods[job.workload]:
                self._quota.finish(job.workload)

    def _leave(self, running_pod: RunningPod) -> None:
        """Remove a pod from its node, and then its claims. Each may help pods that wait."""
        bound = running_pod.pod
        self.running.leave(running_pod)
        self._count(running_pod, -1)
        self._cluster.snapshot.remove_pod(bound.metadata.uid)
        self._line.wake(Change(Resource.ASSIGNED_POD, Action.DELETE, bound, None))
        if not bound.spec.resource_claims:
            return
        self._place_all()
        for before, after in list(self._cluster.release_claims(bound)):
            if after is None:
                self._line.wake(Change(Resource.RESOURCE_CLAIM, Action.DELETE, before, None))
            else:
                claim = None if reservation.frees_devices(before, after) else cache.key_of(after)
                self._line.wake(Change(Resource.RESOURCE_CLAIM, Action.UPDATE, before, after), claim=claim)

    # Evictions

    def evict(self, running_pod: RunningPod, *, is_preempted: bool = False) -> None:
        """Let a pod terminate, perhaps because the scheduler evicts it."""
        bound = running_pod.pod
        self.running.stop(running_pod)
        metadata = structs.replace(bound.metadata, deletion_timestamp=_BEGINNING)
        spec = structs.replace(bound.spec, node_name=running_pod.node)
        status = structs.replace(bound.status, conditions=(_PREEMPTED,)) if is_preempted else bound.status
        self._cluster.snapshot.add_pod(structs.replace(bound, metadata=metadata, spec=spec, status=status))
        self._terminating.append(running_pod)
        self._observe("evict", running_pod)

    def terminate_next(self) -> bool:
        """Let the next terminating pod leave its node. Return False if there is none.

        The controller of the pod creates it again, unless its job was stopped.
        """
        if not self._terminating:
            return False
        running_pod = self._terminating.popleft()
        job = running_pod.job
        self._leave(running_pod)
        if job.running.get(running_pod.index) is running_pod:
            self._place_all()
            self._recreate(running_pod)
        return True

    def lose(self, running_pod: RunningPod, *, reason: str) -> None:
        """End a pod whose node or device fails. Its controller creates it again."""
        self.record_eviction(running_pod.job, [running_pod], reason=reason, index=running_pod.index)
        self.running.stop(running_pod)
        self._observe("evict", running_pod)
        self._leave(running_pod)
        self._place_all()
        self._recreate(running_pod)
        # The scheduler tries the new pod before the next one is lost.
        self._place_all()

    def _recreate(self, running_pod: RunningPod) -> None:
        job = running_pod.job
        del job.running[running_pod.index]
        job.attempts += 1
        job.waiting.append(running_pod.index)
        self._measures.waiting_pods += 1
        self._line.add(job, [running_pod.index])

    def stop_job(self, job: JobRun, *, preemptor: JobRun | None, reason: str, setting: str) -> None:
        """Evict all pods of a job that lost its quota. It waits for quota again."""
        self.record_eviction(job, list(job.running.values()), preemptor, reason=reason, setting=setting)
        self._line.remove(job)
        for each in list(job.running.values()):
            if self.running.is_running(each):
                self.evict(each)
            del job.running[each.index]
            job.waiting.append(each.index)
            self._measures.waiting_pods += 1
        job.waiting.sort()
        job.attempts += 1

    def record_eviction(
        self,
        job: JobRun,
        pods: Sequence[RunningPod],
        preemptor: JobRun | None = None,
        *,
        reason: str,
        setting: str = "",
        index: int = -1,
    ) -> None:
        """Count the eviction of pods of a job: of one with an ``index``, or of all."""
        now = self._now()
        job.evictions += 1
        self._measures.count_eviction(
            EvictionRecord(
                now,
                job.key,
                preemptor.key if preemptor is not None else "",
                reason,
                sum(now - each.started for each in pods),
                setting,
                index,
                sum((now - each.started) * each.devices for each in pods),
            )
        )

    def _count(self, running_pod: RunningPod, sign: int) -> None:
        self._measures.count_pods(self._amounts.get(running_pod.job.shape), sign, devices=running_pod.devices)

    def _observe(self, happening: str, running_pod: RunningPod) -> None:
        if self._observer is not None:
            self._observer(happening, self._now(), running_pod.job, running_pod.node)
