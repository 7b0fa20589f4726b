"""Running pods of a simulation, by uid, and the jobs that wait or run.

Pods that ran in the cluster before the simulation began are residents. Many futures share them, and most of them are
never touched, so a resident becomes a running pod with a job of its own only when an event concerns it.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from drachma.api import pod
from drachma.simulate.timeline.events import JobShape
from drachma.simulate.timeline.jobrun import JobRun, Resident, RunningPod


class Residents:
    """Pods that run at the beginning of a simulation. It is never changed."""

    def __init__(self, members: Iterable[Resident], *, shape_of: Callable[[pod.Pod], JobShape]) -> None:
        """``shape_of`` returns the shape of a pod, the same for pods that are alike."""
        self.members: Final = tuple(members)
        self.shape_of: Final = shape_of
        self.by_uid: Final = {each.pod.metadata.uid: each for each in self.members}
        self.priorities: Final = collections.Counter(each.pod.spec.priority or 0 for each in self.members)
        self.workloads: Final = collections.Counter(each.workload for each in self.members if each.workload)
        """Number of pods of each workload."""

    @functools.cached_property
    def uids(self) -> dict[str, str]:
        """Uids by namespace and name."""
        metadata = (each.pod.metadata for each in self.members)
        return {f"{each.namespace or 'default'}/{each.name}": each.uid for each in metadata}


class RunningPods:
    """Pods on nodes, with the jobs that wait or run."""

    def __init__(self, on_meeting: Callable[[RunningPod], None]) -> None:
        """``on_meeting`` is called for every resident that an event concerns."""
        self._on_meeting: Final = on_meeting
        self.jobs: Final[dict[str, JobRun]] = {}
        """Jobs by namespace and name, without those of residents that no event has concerned."""
        self._pods: Final[dict[str, RunningPod]] = {}
        self._priorities: Final[collections.Counter[int]] = collections.Counter()
        self._residents: Residents | None = None
        self._remaining_seconds: Sequence[float | None] = ()
        self._adoption_time = 0.0
        self._met: Final[set[str]] = set()
        """Residents that have become running pods."""

    def adopt(self, residents: Residents, remaining_seconds: Sequence[float | None], now: float) -> None:
        """Take over pods that run already: each for a number of seconds from now on, or None for ever."""
        self._residents = residents
        self._remaining_seconds = remaining_seconds
        self._adoption_time = now
        self._priorities.update(residents.priorities)

    def add(self, running_pod: RunningPod) -> None:
        """Add a pod that has got a node."""
        self._pods[running_pod.pod.metadata.uid] = running_pod
        self._priorities[running_pod.job.shape.priority] += 1

    def get(self, uid: str) -> RunningPod | None:
        """Return a running pod, or None."""
        running_pod = self._pods.get(uid)
        if running_pod is None and self._residents is not None and uid not in self._met:
            resident = self._residents.by_uid.get(uid)
            return None if resident is None else self.meet(resident)
        return running_pod

    def meet(self, resident: Resident) -> RunningPod | None:
        """Return a resident as a running pod; None if it does not run any more."""
        assert self._residents is not None, "it is one of the residents"
        uid = resident.pod.metadata.uid
        if uid in self._met:
            return self._pods.get(uid)
        self._met.add(uid)
        now = self._adoption_time
        seconds = self._remaining_seconds[resident.number]
        job = JobRun.of_resident(resident, self._residents.shape_of(resident.pod), seconds, now)
        self.jobs[job.key] = job
        self._pods[uid] = job.running[0]
        self._on_meeting(job.running[0])
        return job.running[0]

    def has_job(self, key: str) -> bool:
        """Return True if a job waits or runs."""
        if key in self.jobs or self._residents is None:
            return key in self.jobs
        uid = self._residents.uids.get(key)
        return uid is not None and uid not in self._met

    def all_jobs(self) -> dict[str, JobRun]:
        """Return all jobs, with those of residents."""
        for resident in self._residents.members if self._residents is not None else ():
            self.meet(resident)
        return self.jobs

    def is_running(self, running_pod: RunningPod) -> bool:
        """Return True if a pod has not ended and was not evicted."""
        return self._pods.get(running_pod.pod.metadata.uid) is running_pod

    def stop(self, running_pod: RunningPod) -> None:
        """Remove a pod that ends or is evicted. It counts as a possible victim until it has left its node."""
        del self._pods[running_pod.pod.metadata.uid]

    def leave(self, running_pod: RunningPod) -> None:
        """Note that a pod has left its node."""
        self._priorities[running_pod.job.shape.priority] -= 1

    def has_less_important(self, priority: int) -> bool:
        """Return True if a pod of a lower priority is on a node."""
        return any(count > 0 and lower < priority for lower, count in self._priorities.items())

    def __iter__(self) -> Iterator[RunningPod]:
        return iter(self._pods.values())
