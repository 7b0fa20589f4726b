"""Waiting line: pods without a node, in the scheduler's own queue.

Pods are tried in the order in which the scheduler would try them, after the changes that make it try them again. Pods
of one shape are alike: if one of them fits nowhere, the others do not either, until something changes. So most attempts
cost little.

If very many pods wait, only some pods of each shape are in the queue. The others follow them, in the order in which
they came.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from drachma.api import pod
from drachma.runtime import cache
from drachma.scheduler import queue
from drachma.scheduler.framework import hints
from drachma.scheduler.snapshot import gangs, podinfo
from drachma.simulate.simulation import Refusal, Simulation
from drachma.simulate.timeline.events import JobShape
from drachma.simulate.timeline.jobrun import JobRun

_MOST_QUEUED: Final = 64
"""Number of pods in the queue from which on pods of shapes that are in the queue already stay out of it."""


class WaitingPod(NamedTuple):
    """Pod of a job that waits for a node."""

    job: JobRun
    number: int
    pod: pod.Pod


class WaitingLine:
    """Pods that wait for nodes."""

    def __init__(self, cluster: Simulation, *, now: Callable[[], float], pauses: queue.Pauses | None = None) -> None:
        self._cluster: Final = cluster
        self._now: Final = now
        self._pauses: Final = pauses or queue.Pauses()
        self._queue: Final = queue.Queue(cluster.hints(), _never_rejected, monotonic=now, pauses=self._pauses)
        self._queued: Final[dict[cache.Key, WaitingPod]] = {}
        self._followers: Final[dict[JobShape, collections.deque[WaitingPod]]] = {}
        self._counts: Final[collections.Counter[JobShape]] = collections.Counter()
        """Number of pods of each shape in the queue."""
        self._jobs: Final[dict[str, JobRun]] = {}
        """Jobs with waiting pods, in the order in which they came."""
        self._refusals: Final[dict[JobShape, tuple[Refusal, frozenset[str]]]] = {}
        """Shapes that fit nowhere, and that no eviction helps."""
        self._is_local: Final[dict[JobShape, bool]] = {}
        self._attempt: list[queue.QueuedPod] = []

    def jobs(self) -> list[JobRun]:
        """Return all jobs with waiting pods, in the order in which they came."""
        return list(self._jobs.values())

    def add(self, job: JobRun, indexes: Iterable[int]) -> None:
        """Add pods of a job, which its controller creates."""
        self._jobs.setdefault(job.key, job)
        pods = [WaitingPod(job, index, job.make_pod(index)) for index in indexes]
        is_full = len(self._queue) >= _MOST_QUEUED and self._counts[job.shape] > 0
        if is_full or job.shape in self._followers:
            self._followers.setdefault(job.shape, collections.deque()).extend(pods)
            return
        for each in pods:
            self._enqueue(each)

    def _enqueue(self, waiting_pod: WaitingPod) -> None:
        self._queued[cache.key_of(waiting_pod.pod)] = waiting_pod
        self._counts[waiting_pod.job.shape] += 1
        self._queue.add(waiting_pod.pod)

    def remove(self, job: JobRun) -> None:
        """Remove all pods of a job, because they are deleted."""
        if self._jobs.pop(job.key, None) is None:
            return
        for key, waiting_pod in [entry for entry in self._queued.items() if entry[1].job is job]:
            self._queue.delete(waiting_pod.pod)
            self._forget(key, waiting_pod)
            self._cluster.end(waiting_pod.pod)
        followers = self._followers.get(job.shape, ())
        remaining_pods = collections.deque(each for each in followers if each.job is not job)
        if remaining_pods:
            self._followers[job.shape] = remaining_pods
        else:
            self._followers.pop(job.shape, None)
        self._refill(job.shape)

    def _forget(self, key: cache.Key, waiting_pod: WaitingPod) -> None:
        del self._queued[key]
        self._counts[waiting_pod.job.shape] -= 1

    def _refill(self, shape: JobShape) -> None:
        """Add followers to the queue in place of pods of their shape that have left it."""
        followers = self._followers.get(shape)
        while followers and (not self._counts[shape] or len(self._queue) < _MOST_QUEUED):
            job = followers[0].job
            self._enqueue(followers.popleft())
            while shape.is_gang and followers and followers[0].job is job:
                self._enqueue(followers.popleft())
        if followers is not None and not followers:
            del self._followers[shape]

    # Attempts

    def next(self) -> list[WaitingPod]:
        """Return the pods that are to be tried next: one, or those of a gang. Return none if no pod is to be tried."""
        while (entry := self._queue.pop()) is not None:
            waiting_pod = self._queued[entry.info.key]
            job = waiting_pod.job
            entries = [entry]
            if job.shape.is_gang:
                members = [key for key, each in self._queued.items() if each.job is job and key != entry.info.key]
                other_members = (self._queue.take(key, self._queued[key].pod.metadata.uid) for key in members)
                entries = sorted(
                    [entry, *(each for each in other_members if each is not None)], key=lambda each: each.info.key
                )
            self._attempt = entries
            refusal = self._refusals.get(job.shape)
            if refusal is None or not self._is_like_others(job, entries):
                return [self._queued[each.info.key] for each in entries]
            self.refuse(*refusal)
        return []

    def _is_like_others(self, job: JobRun, entries: Sequence[queue.QueuedPod]) -> bool:
        """Return True if a decision about the pods is one about all pods of their shape."""
        if job.shape.is_gang and len(entries) < job.shape.count:
            return False
        nominations = self._cluster.snapshot.nominations
        return not any(nominations.node_of(each.info.uid) for each in entries)

    def place(self, pods: Iterable[pod.Pod]) -> None:
        """Take pods of the attempt out of the line, because they have nodes now. The other pods go back.

        Their jobs must not count them as waiting any more.
        """
        placed = {cache.key_of(each) for each in pods}
        for entry in self._attempt:
            key = entry.info.key
            waiting_pod = self._queued[key]
            if key not in placed:
                self._queue.put_back(entry, rejectors=frozenset({hints.GANG_SCHEDULING}), current=entry.info.pod)
                continue
            self._forget(key, waiting_pod)
            self._refill(waiting_pod.job.shape)
            if not waiting_pod.job.waiting:
                self._jobs.pop(waiting_pod.job.key, None)

    def refuse(self, refusal: Refusal, rejectors: frozenset[str], *, is_final: bool = False) -> None:
        """Put the pods of the attempt back. If it is final, pods of their shape need no attempt before a change."""
        job = self._queued[self._attempt[0].info.key].job
        job.reason = refusal.reason
        current = {} if refusal.unit is None else {each.uid: each.pod for each in refusal.unit.members}
        if is_final and self._has_local(job.shape) and self._is_like_others(job, self._attempt):
            self._refusals[job.shape] = Refusal(refusal.reason), rejectors
        for entry in self._attempt:
            self._queue.put_back(entry, rejectors=rejectors, current=current.get(entry.info.uid, entry.info.pod))

    def _has_local(self, shape: JobShape) -> bool:
        is_local = self._is_local.get(shape)
        if is_local is None:
            is_local = self._is_local[shape] = podinfo.is_local(pod.Pod(spec=shape.spec))
        return is_local

    def nominate(self, nominee: podinfo.PodInfo, node: str) -> None:
        """Nominate a node for a pod, or none. Less important pods with the same nomination are tried again."""
        nominations = self._cluster.snapshot.nominations
        if not node:
            if nominations.node_of(nominee.uid):
                nominations.remove(nominee.uid)
                self._refusals.clear()
            return
        for each in nominations.behind(nominee, node):
            nominations.remove(each.uid)
            self._queue.activate(each.key)
        nominations.put(nominee, node)

    def is_nominated(self, refusal: Refusal) -> bool:
        """Return True if a node is nominated for one of the pods that were refused."""
        members = refusal.unit.members if refusal.unit is not None else ()
        return any(self._cluster.snapshot.nominations.node_of(each.uid) for each in members)

    # Changes

    def wake(self, change: hints.Change, *, claim: cache.Key | None = None) -> None:
        """Try the pods again that a change can help."""
        self._refusals.clear()
        self._queue.wake(change, claim=claim)

    def next_time(self) -> float | None:
        """Return the time at which a pod is tried again without a change, or None."""
        return self._queue.next_time()

    def skip(self, until: float) -> None:
        """Let time pass without a change. Pods that are tried again meanwhile fit nowhere again."""
        periods = math.floor((until - self._now()) / self._pauses.parked) - 1
        if periods > 0:
            self._queue.fail_again(periods)


def _never_rejected(_pod: pod.Pod) -> None:
    return None


def gang_of(job: JobRun, pods: Sequence[pod.Pod]) -> gangs.Gang:
    """Return the gang of a job whose waiting pods are given."""
    members = {each.metadata.uid: cache.key_of(each) for each in pods}
    members |= {each.pod.metadata.uid: cache.key_of(each.pod) for each in job.running.values()}
    done = job.shape.count - len(job.waiting) - len(job.running)
    key = gangs.GangKey(job.shape.namespace, gangs.Source.LABEL, job.arrival.name)
    return gangs.Gang(key, job.shape.count, members, done)
