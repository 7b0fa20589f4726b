"""Future of an existing cluster: its running pods end, its waiting pods and queued workloads start.

Running times are those that users gave (annotation ``drachma.dev/duration`` of a pod), or else drawn from the running
times of earlier jobs, or around an assumed mean; without any of these, a pod runs for ever. Of the earlier running
times, those count for a pod that are longer than the pod has run already.
"""

from __future__ import annotations

import bisect
import random
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from drachma.api import meta, pod
from drachma.claims import podstate
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.podsetinfo import WORKLOAD_ANNOTATION
from drachma.scheduler.settings import Settings
from drachma.simulate.clusterstate import ClusterState
from drachma.simulate.simulation import Simulation
from drachma.simulate.timeline import durations, quota
from drachma.simulate.timeline.events import Arrival, JobShape
from drachma.simulate.timeline.jobrun import JobRun
from drachma.simulate.timeline.timeline import Observer, Timeline

DURATION: Final = "drachma.dev/duration"


class ClusterNow(NamedTuple):
    """Cluster at one moment."""

    state: ClusterState
    queueing: tuple[meta.Object, ...]
    now: datetime
    settings: Settings = Settings()


class Future(NamedTuple):
    """Timeline of a cluster from now on, and the jobs that wait already."""

    timeline: Timeline
    waiting: tuple[Arrival, ...]


class Assumption(NamedTuple):
    """Running times of pods that state none, in seconds."""

    mean: float | None = None
    history: tuple[float, ...] = ()
    """Running times of earlier jobs in ascending order, which come before the mean."""

    def draw(self, rng: random.Random, elapsed: float = 0.0) -> float | None:
        """Return a running time from now on of a pod that has run for some time; None if it is not known."""
        if self.history:
            first = bisect.bisect_right(self.history, elapsed)
            # A pod that has run longer than all others runs for as long again.
            return rng.choice(self.history[first:]) - elapsed if first < len(self.history) else max(elapsed, 1.0)
        return rng.expovariate(1 / self.mean) if self.mean else None


def build(
    cluster: ClusterNow,
    *,
    assumption: Assumption,
    rng: random.Random,
    seed: int = 0,
    observer: Observer | None = None,
) -> Future:
    """Return the future of a cluster."""
    running_pods = [each for each in cluster.state.all(pod.Pod) if each.spec.node_name and not podstate.has_ended(each)]
    pending = [each for each in cluster.state.all(pod.Pod) if _is_pending(each)]
    simulation = Simulation(cluster.state, settings=cluster.settings, seed=seed)
    queued = [each for each in cluster.queueing if isinstance(each, workload.Workload) and _is_queued(each)]
    other_objects = [each for each in cluster.queueing if each not in queued]
    queues = quota.Quota(other_objects, epoch=cluster.now) if quota.has_queues(other_objects) else None
    timeline = Timeline(simulation, quota=queues, observer=observer)

    def length(annotations: Mapping[str, str], elapsed: float = 0.0) -> float | None:
        stated = annotations.get(DURATION)
        if stated is not None:
            return max(durations.parse(stated, title=f"annotation {DURATION}") - elapsed, 0.0)
        return assumption.draw(rng, elapsed)

    for each in running_pods:
        begin = each.status.start_time
        elapsed = (cluster.now - begin).total_seconds() if begin is not None else 0.0
        timeline.adopt(each, length(each.metadata.annotations, elapsed), workload=_workload_of(each))
    arrivals = [
        Arrival(0.0, str(each.metadata.name), _pod_shape(each), length(each.metadata.annotations))
        for each in sorted(pending, key=_age)
    ]
    arrivals += [
        Arrival(0.0, str(each.metadata.name), _workload_shape(each), length(each.metadata.annotations))
        for each in sorted(queued, key=_age)
    ]
    for each in pending:
        simulation.remove(each)
    return Future(timeline, tuple(arrivals))


class Forecast(NamedTuple):
    """Answer to the question when a job starts."""

    node: str
    """Node of its first pod, if it starts now."""
    starts: tuple[float, ...]
    """Starts in the samples that it starts in, in seconds from now, in ascending order."""
    samples: int
    reason: str
    """Reason why it does not start now."""

    def percentile(self, percent: int) -> float | None:
        """Return the time by which it has started in this percentage of all samples; None if it has not."""
        index = -(-percent * self.samples // 100) - 1
        return self.starts[index] if index < len(self.starts) else None


def forecast(
    cluster: ClusterNow,
    job: Arrival | None,
    key: str,
    *,
    assumption: Assumption,
    samples: int,
    horizon: float,
    seed: int,
) -> Forecast:
    """Return when a job starts: a new one, or one that waits in the cluster (by ``namespace/name``)."""
    starts = []
    node = reason = ""
    for number in range(samples):
        rng = random.Random(f"{seed}/{number}")
        nodes: list[str] = []

        def note(what: str, time: float, run: object, where: str, nodes: list[str] = nodes) -> None:
            if what == "start" and getattr(run, "key", "") == key:
                nodes.append(where)

        future = build(cluster, assumption=assumption, rng=rng, seed=seed, observer=note)
        arrivals = [*future.waiting, *([job] if job is not None else ())]
        future.timeline.run(arrivals, until=0.0)
        run = future.timeline.jobs.get(key)
        if number == 0 and run is not None:
            reason = run.reason
        future.timeline.watch(key)
        future.timeline.run((), until=horizon)
        if future.timeline.watched_start is not None:
            starts.append(future.timeline.watched_start)
            if future.timeline.watched_start == 0.0 and nodes:
                node = nodes[0]
    return Forecast(node, tuple(sorted(starts)), samples, "" if node else reason)


def forecast_all(
    cluster: ClusterNow, *, assumption: Assumption, samples: int, horizon: float, seed: int = 0
) -> dict[str, Forecast]:
    """Return when each job starts that waits in the cluster, by ``namespace/name``."""
    starts: dict[str, list[float]] = {}
    nodes: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for number in range(samples):
        first: dict[str, float] = {}

        def note(what: str, time: float, run: JobRun, where: str, first: dict[str, float] = first) -> None:
            if what == "start" and run.key not in first:
                first[run.key] = time
                if time == 0.0:
                    nodes[run.key] = where

        rng = random.Random(f"{seed}/{number}")
        future = build(cluster, assumption=assumption, rng=rng, seed=seed, observer=note)
        keys = [f"{each.shape.namespace}/{each.name}" for each in future.waiting]
        future.timeline.run(future.waiting, until=0.0)
        for key in keys:
            run = future.timeline.jobs.get(key)
            reasons.setdefault(key, run.reason if run is not None else "")
        future.timeline.run((), until=horizon)
        for key in keys:
            starts.setdefault(key, []).extend([first[key]] if key in first else [])
    return {
        key: Forecast(nodes.get(key, ""), tuple(sorted(times)), samples, "" if key in nodes else reasons[key])
        for key, times in starts.items()
    }


def _is_pending(each: pod.Pod) -> bool:
    return not each.spec.node_name and not podstate.has_ended(each) and each.metadata.deletion_timestamp is None


def _is_queued(each: workload.Workload) -> bool:
    return not workloadstate.has_reservation(each) and not workloadstate.is_finished(each)


def _workload_of(each: pod.Pod) -> str:
    name = each.metadata.annotations.get(WORKLOAD_ANNOTATION, "")
    return f"{each.metadata.namespace}/{name}" if name else ""


def _age(each: pod.Pod | workload.Workload) -> tuple[str, str]:
    return str(each.metadata.creation_timestamp or ""), str(each.metadata.name)


def _pod_shape(each: pod.Pod) -> JobShape:
    return JobShape(spec=each.spec, labels=each.metadata.labels, namespace=each.metadata.namespace or "default")


def _workload_shape(each: workload.Workload) -> JobShape:
    sets: Sequence[workload.PodSet] = each.spec.pod_sets
    template = sets[0].template if sets else workload.PodSet().template
    return JobShape(
        spec=template.spec,
        count=sum(pod_set.count or 1 for pod_set in sets) or 1,
        labels=template.metadata.labels,
        namespace=each.metadata.namespace or "default",
        queue=each.spec.queue_name,
    )
