"""Quota over time: the admission cycles of the queues, on jobs of a simulation instead of stored workloads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec import structs

from drachma.api import job as jobs
from drachma.api import meta, namespace, pod
from drachma.queueing.admission import preemption
from drachma.queueing.admission.entry import Entry, Status
from drachma.queueing.kinds import clusterqueue, localqueue, resourceflavor, workload
from drachma.queueing.workloads import podsetinfo, transitions, workloadstate
from drachma.simulate.queueingstate import QueueingState
from drachma.simulate.timeline.events import JobShape
from drachma.simulate.timeline.jobrun import JobRun

_SETTINGS: Final = {
    preemption.IN_CLUSTER_QUEUE: "spec.preemption.withinClusterQueue",
    preemption.IN_COHORT_RECLAMATION: "spec.preemption.reclaimWithinCohort",
    preemption.IN_COHORT_FAIR_SHARING: "spec.preemption.reclaimWithinCohort with fair sharing",
    preemption.IN_COHORT_RECLAIM_WHILE_BORROWING: "spec.preemption.borrowWithinCohort",
}
"""Field of a ClusterQueue that allows preemptions of each reason."""


class QuotaEviction(NamedTuple):
    """Job that has to give up its quota for another."""

    victim: str
    preemptor: str
    reason: str
    setting: str


class QuotaDecisions(NamedTuple):
    """Decisions of admission cycles."""

    admitted: dict[str, JobShape]
    """Shapes of admitted jobs, with the node labels of their flavors."""
    evictions: list[QuotaEviction]
    reasons: dict[str, str]
    """Reasons why jobs wait."""


class Quota:
    """Queues of a cluster, which jobs wait in. Times are seconds since ``epoch``."""

    def __init__(
        self,
        objects: Iterable[meta.Object],
        *,
        epoch: datetime,
        now: float = 0.0,
        workloads: Iterable[workload.Workload] = (),
    ) -> None:
        """``workloads`` are jobs that wait or run already.

        Raises RefusedConfigurationError if the configuration among the objects is refused.
        """
        self._epoch: Final = epoch
        self._objects: Final = {_identity(each): each for each in _with_namespaces(tuple(objects))}
        self._state = QueueingState([*self._objects.values(), *workloads], self._time(now))
        self._to_retry: set[str] = set()
        self._shapes: Final[dict[tuple[JobShape, tuple[str, ...]], JobShape]] = {}
        self._jobs: Final[dict[str, JobRun]] = {}

    def _time(self, now: float) -> datetime:
        return self._epoch + timedelta(seconds=now)

    @property
    def workloads(self) -> list[workload.Workload]:
        """Workloads of all jobs that wait or run."""
        return list(self._state.workloads.values())

    def adopt(self, job: JobRun) -> None:
        """Take over a job whose workload was there from the beginning, with the flavors of its admission."""
        self._jobs[job.key] = job
        admitted = self._state.workloads.get(job.key)
        if admitted is not None and admitted.status.admission is not None:
            job.shape = self._with_flavors(job.arrival.shape, admitted)

    def submit(self, job: JobRun, now: float) -> str:
        """Put a job into its queue. Return the reason why it is in none, or an empty text."""
        self._jobs[job.key] = job
        shape, time = job.arrival.shape, self._time(now)
        template = jobs.PodTemplateSpec(metadata=meta.ObjectMeta(labels=shape.labels), spec=shape.spec)
        queued = workload.Workload(
            metadata=meta.ObjectMeta(
                name=job.arrival.name,
                namespace=shape.namespace,
                uid=f"{job.key}/workload",
                creation_timestamp=time,
            ),
            spec=workload.WorkloadSpec(
                pod_sets=(workload.PodSet(name=podsetinfo.DEFAULT_POD_SET, template=template, count=shape.count),),
                queue_name=shape.queue,
                priority=shape.priority,
            ),
        )
        if self._state.admitter.queue_of(queued) is None:
            return f"there is no local queue {shape.queue} in namespace {shape.namespace} with a cluster queue"
        return self._state.submit(queued, time)

    def requeue(self, job: JobRun, now: float) -> None:
        """Put a job that was evicted into its queue again."""
        self._release(job.key)
        time = self._time(now)
        evicted = self._state.workloads[job.key]
        unreserved = transitions.unreserve(evicted, reason="Pending", message="The workload was evicted", now=time)
        self._state.submit(unreserved, time)

    def reclaim(self, job: JobRun, ended: int) -> None:
        """Release the quota of pods that have ended, of a job with pods that have not."""
        holder = self._state.admitter.snapshot.holders.get(job.key)
        if holder is None:
            return
        reclaimable = (workload.ReclaimablePod(name=podsetinfo.DEFAULT_POD_SET, count=ended),)
        current = self._state.workloads[job.key]
        smaller = structs.replace(current, status=structs.replace(current.status, reclaimable_pods=reclaimable))
        self._state.workloads[job.key] = smaller
        self._state.admitter.hold(smaller)
        self._to_retry.add(holder.cluster_queue)

    def finish(self, key: str) -> None:
        """Release the quota of a job or workload that has ended."""
        self._release(key)
        self._state.admitter.forget(key)
        self._state.workloads.pop(key, None)
        self._jobs.pop(key, None)

    def _release(self, key: str) -> None:
        info = self._state.admitter.snapshot.holders.get(key)
        if info is not None:
            self._state.admitter.release(key)
            self._to_retry.add(info.cluster_queue)

    def change(self, applied: Sequence[meta.Object], removed: Sequence[meta.Object], now: float) -> None:
        """Apply changes of queues, flavors and other objects that admission depends on."""
        before = dict(self._objects)
        self._objects.update({_identity(each): each for each in _with_namespaces(tuple(applied))})
        for each in removed:
            self._objects.pop(_identity(each), None)
        if self._objects != before:
            self._state = QueueingState([*self._objects.values(), *self._state.workloads.values()], self._time(now))

    def admit(self, now: float) -> QuotaDecisions:
        """Run admission cycles until one changes nothing, or until victims have to stop first."""
        admitter, time = self._state.admitter, self._time(now)
        if self._to_retry:
            admitter.retry([each for each in self._to_retry if each in admitter.queues], time)
            self._to_retry.clear()
        decisions = QuotaDecisions({}, [], {})
        tried: frozenset[str] = frozenset()
        while (report := admitter.run_cycle(time)) is not None:
            self._state.workloads.update(report.workloads)
            for entry in report.entries:
                self._note(entry, decisions)
            if decisions.evictions:
                break
            if any(entry.status is Status.ADMITTED for entry in report.entries):
                tried = frozenset()
                continue
            heads = frozenset(entry.info.key for entry in report.entries)
            if heads <= tried:
                break
            tried |= heads
        return decisions

    def _note(self, entry: Entry, decisions: QuotaDecisions) -> None:
        key = entry.info.key
        if entry.status is Status.ADMITTED:
            job = self._jobs.get(key)
            if job is not None:
                decisions.admitted[key] = self._with_flavors(job.arrival.shape, self._state.workloads[key])
            return
        decisions.reasons[key] = entry.message
        for target in entry.victims if entry.requeue_reason == "PendingPreemption" else ():
            if workloadstate.is_evicted(self._state.workloads[target.info.key]):
                setting = f"ClusterQueue {entry.info.cluster_queue}: {_SETTINGS.get(target.reason, 'spec.preemption')}"
                decisions.evictions.append(QuotaEviction(target.info.key, key, target.reason, setting))

    def _with_flavors(self, shape: JobShape, admitted: workload.Workload) -> JobShape:
        """Return the shape of the pods with the node labels and tolerations of the flavors."""
        admission = admitted.status.admission
        assignments = admission.pod_set_assignments if admission is not None else ()
        names = tuple(sorted({name for each in assignments for name in each.flavors.values()}))
        changed = self._shapes.get((shape, names))
        if changed is None:
            flavors = [
                flavor.spec
                for name in names
                if isinstance(flavor := self._objects.get(("ResourceFlavor", "", name)), resourceflavor.ResourceFlavor)
            ]
            changed = self._shapes[shape, names] = structs.replace(shape, spec=_placed(shape.spec, flavors))
        return changed


def has_queues(objects: Iterable[meta.Object]) -> bool:
    """Return True if some of the objects are queues."""
    return any(isinstance(each, clusterqueue.ClusterQueue) for each in objects)


def _placed(spec: pod.PodSpec, flavors: Sequence[resourceflavor.ResourceFlavorSpec]) -> pod.PodSpec:
    selector = dict(spec.node_selector)
    tolerations = list(spec.tolerations)
    for flavor in flavors:
        selector.update(flavor.node_labels)
        tolerations += [each for each in flavor.tolerations if each not in tolerations]
    return structs.replace(spec, node_selector=selector, tolerations=tuple(tolerations))


def _identity(each: meta.Object) -> tuple[str, str, str]:
    return type(each).__name__, each.metadata.namespace or "", str(each.metadata.name)


def _with_namespaces(objects: tuple[meta.Object, ...]) -> tuple[meta.Object, ...]:
    """Return the objects with the namespaces of local queues, which files often lack."""
    present = {each.metadata.name for each in objects if isinstance(each, namespace.Namespace)}
    absent = {each.metadata.namespace for each in objects if isinstance(each, localqueue.LocalQueue)} - present
    return (
        *objects,
        *(
            namespace.Namespace(metadata=meta.ObjectMeta(name=name, labels={"kubernetes.io/metadata.name": str(name)}))
            for name in sorted(map(str, absent))
        ),
    )
