"""Future of an existing cluster: its running pods end, its waiting pods and queued workloads start.

Running times are those that users gave (annotation ``drachma.dev/duration`` of a pod), or else drawn from the running
times of earlier jobs, or around an assumed mean; without any of these, a pod runs for ever. Of the earlier running
times, those count for a pod that are longer than the pod has run already. Later jobs arrive at the rate of recent ones.
"""

from __future__ import annotations

import bisect
import functools
import heapq
import math
import random
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from drachma.api import codec, meta, pod
from drachma.claims import podstate
from drachma.claims.podclaims import all_names
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.podsetinfo import WORKLOAD_ANNOTATION
from drachma.scheduler.settings import Settings
from drachma.simulate.clusterstate import ClusterState
from drachma.simulate.simulation import Simulation
from drachma.simulate.timeline import durations
from drachma.simulate.timeline.events import Arrival, JobShape
from drachma.simulate.timeline.jobrun import JobRun, Resident
from drachma.simulate.timeline.podlifecycle import Observer
from drachma.simulate.timeline.runningpods import Residents
from drachma.simulate.timeline.timeline import Timeline

if TYPE_CHECKING:
    from drachma.simulate.timeline.quota import Quota

DURATION: Final = "drachma.dev/duration"
_STRETCH: Final = 100
"""Number of consecutive earlier jobs whose running times one future draws from."""
_RECENT: Final = 200
"""Number of pods that arrived last, whose rate later arrivals have."""
_FEWEST_RECENT: Final = 10
"""Number of recent pods below which a rate is not known, and no later arrivals are expected."""
_SHORTEST_SPAN: Final = 600.0
"""Seconds in which fewer than ``_RECENT`` pods do not tell a rate: they may be of one ``apply``."""
_MOST_WEIGHT: Final = 20.0
"""Most pods that one pod, still running, represents in the sample of running times."""
_EARLIER: Final = 2.4
"""Factor by which ranges begin earlier than samples say. It makes 10 % of the truths come before the range on every
second window of a replayed openb trace, and ``python -m bench eta`` measures the other windows."""
_MOST_EXPECTED: Final = 300
"""Limit for later arrivals in one future."""


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
    expected: Iterator[Arrival]
    """Jobs that may arrive later, without an end."""


class Assumption(NamedTuple):
    """Running times of pods that state none, in seconds."""

    mean: float | None = None
    history: tuple[float, ...] = ()
    """Running times of earlier jobs in the order of their arrival, which come before the mean."""


class _Durations:
    """Running times in one future.

    Running times change over weeks, and those of jobs that arrive together are alike. So a future draws from one
    stretch of the history, which is chosen at random: futures differ as much as stretches of the past did.
    """

    def __init__(self, assumption: Assumption, rng: random.Random) -> None:
        self._mean: Final = assumption.mean
        self._rng: Final = rng
        self._history: Final = sorted(assumption.history)
        begin = rng.randrange(max(len(self._history) - _STRETCH, 0) + 1)
        self._stretch: Final = sorted(assumption.history[begin : begin + _STRETCH])

    def draw(self, elapsed: float = 0.0) -> float | None:
        """Return a running time from now on of a pod that has run for some time; None if it is not known."""
        for times in (self._stretch, self._history):
            first = bisect.bisect_right(times, elapsed)
            if first < len(times):
                return times[self._rng.randrange(first, len(times))] - elapsed
        if self._history:
            # A pod that has run longer than all others runs for as long again.
            return max(elapsed, 1.0)
        return self._rng.expovariate(1 / self._mean) if self._mean else None

    def survival(self, elapsed: float) -> float:
        """Return the share of jobs that run for longer than this."""
        if not self._history:
            return math.exp(-elapsed / self._mean) if self._mean else 1.0
        return 1 - bisect.bisect_right(self._history, elapsed) / len(self._history)


class _RecentPods(NamedTuple):
    """Pods that arrived last, from which later arrivals are drawn."""

    shapes: tuple[JobShape, ...]
    elapsed: tuple[float | None, ...]
    """Seconds that each has run; None for those that wait."""
    span: float
    """Seconds since the first of them arrived."""


class Prospect:
    """Cluster now, from which futures are made. Making one is cheap."""

    def __init__(self, cluster: ClusterNow, *, seed: int = 0) -> None:
        self._cluster: Final = cluster
        self._shapes: Final[dict[object, JobShape]] = {}
        pods = cluster.state.all(pod.Pod)
        running = [each for each in pods if each.spec.node_name and not podstate.has_ended(each)]
        self._pending: Final = sorted((each for each in pods if _is_pending(each)), key=_age)
        self._simulation: Final = Simulation(cluster.state, settings=cluster.settings, seed=seed)
        for each in self._pending:
            self._simulation.remove(each)
        self._queued: Final = sorted(
            (each for each in cluster.queueing if isinstance(each, workload.Workload) and _is_queued(each)), key=_age
        )
        queued = {id(each) for each in self._queued}
        self._queueing: Final = [each for each in cluster.queueing if id(each) not in queued]
        self._running: Final = running
        self._residents: Final = Residents(
            (self._resident(number, each) for number, each in enumerate(running)), shape_of=self._pod_shape
        )

    def future(self, assumption: Assumption, rng: random.Random, *, observer: Observer | None = None) -> Future:
        """Return one future."""
        timeline = Timeline(self._simulation.fork(), quota=self._quota(), observer=observer, has_samples=False)
        durations_ahead = _Durations(assumption, rng)
        timeline.adopt(
            self._residents,
            [
                durations_ahead.draw(each.elapsed) if each.stated is None else each.stated
                for each in self._residents.members
            ],
        )
        waiting_objects: list[tuple[pod.Pod | workload.Workload, JobShape]] = [
            *((each, self._pod_shape(each)) for each in self._pending),
            *((each, _workload_shape(each)) for each in self._queued),
        ]
        arrivals = []
        for waiting_object, shape in waiting_objects:
            stated = _stated_duration(waiting_object)
            duration = durations_ahead.draw() if stated is None else stated
            arrivals.append(Arrival(0.0, str(waiting_object.metadata.name), shape, duration))
        return Future(timeline, tuple(arrivals), self._expected(durations_ahead, rng))

    def _quota(self) -> Quota | None:
        """Return the queues of the cluster, or None if it has none."""
        if not self._queueing:
            return None
        # Clusters without queues do not need their modules.
        from drachma.simulate.timeline import quota

        return quota.Quota(self._queueing, epoch=self._cluster.now) if quota.has_queues(self._queueing) else None

    def _resident(self, number: int, running_pod: pod.Pod) -> Resident:
        elapsed, stated = self._elapsed(running_pod), _stated_duration(running_pod)
        return Resident(
            number,
            running_pod,
            elapsed,
            None if stated is None else max(stated - elapsed, 0.0),
            _workload_of(running_pod),
        )

    def _elapsed(self, running_pod: pod.Pod) -> float:
        begin = running_pod.status.start_time
        return max((self._cluster.now - begin).total_seconds(), 0.0) if begin is not None else 0.0

    @functools.cached_property
    def _recent(self) -> _RecentPods | None:
        """Pods that arrived last, or None if they are too few to tell a rate."""
        pods = (each for each in (*self._running, *self._pending) if each.metadata.creation_timestamp is not None)
        recent = [each for each in heapq.nlargest(_RECENT, pods, key=_age)[::-1] if not _workload_of(each)]
        if len(recent) < _FEWEST_RECENT:
            return None
        first = recent[0].metadata.creation_timestamp
        assert first is not None, "others are left out"
        span = (self._cluster.now - first).total_seconds()
        is_burst = len(recent) < _RECENT and span < _SHORTEST_SPAN
        if span <= 0 or is_burst:
            return None
        return _RecentPods(
            tuple(map(self._pod_shape, recent)),
            tuple(self._elapsed(each) if each.spec.node_name else None for each in recent),
            span,
        )

    def _expected(self, durations_ahead: _Durations, rng: random.Random) -> Iterator[Arrival]:
        """Yield jobs that may arrive later: at the rate, and with the shapes, of the pods that arrived last.

        Of the pods that arrived some time ago, only those are left that run for long. So each of them stands for those
        that have ended.
        """
        recent = self._recent
        if recent is None or durations_ahead.draw() is None:
            return
        weights = [
            1.0 if elapsed is None else 1 / max(durations_ahead.survival(elapsed), 1 / _MOST_WEIGHT)
            for elapsed in recent.elapsed
        ]
        time = 0.0
        for number in range(_MOST_EXPECTED):
            time += rng.expovariate(sum(weights) / recent.span)
            (shape,) = rng.choices(recent.shapes, weights)
            yield Arrival(time, f"expected-by-drachma-{number}", shape, durations_ahead.draw())

    def _pod_shape(self, each: pod.Pod) -> JobShape:
        """Return the shape of a pod, the same for pods that are alike."""
        shape = self._shapes.get(id(each))
        if shape is not None:
            return shape
        spec = structs.replace(each.spec, node_name="") if each.spec.node_name else each.spec
        key = (codec.encode_part(spec), tuple(sorted(each.metadata.labels.items())), each.metadata.namespace)
        shape = self._shapes.get(key)
        if shape is None:
            namespace = each.metadata.namespace or "default"
            shape = self._shapes[key] = JobShape(spec=spec, labels=each.metadata.labels, namespace=namespace)
        self._shapes[id(each)] = shape
        return shape


class Forecast(NamedTuple):
    """Answer to the question when a job starts."""

    node: str
    """Node of its first pod, if it starts now."""
    starts: tuple[float, ...]
    """Starts in the samples that it starts in, in seconds from now, in ascending order."""
    samples: int
    reason: str
    """Reason why it does not start now."""
    devices: tuple[str, ...] = ()
    """Devices of its pods as driver/pool/device, if it starts now."""
    earlier: float = 1.0
    """Factor by which the range begins earlier than the samples say."""

    def percentile(self, percent: int) -> float | None:
        """Return the time by which it has started in this percentage of all samples; None if it has not."""
        index = max(-(-percent * self.samples // 100) - 1, 0)
        return self.starts[index] if index < len(self.starts) else None

    def likely_range(self) -> tuple[float | None, float | None]:
        """Return the range that a start is in with a probability of 80 %; None for an end beyond the horizon.

        If the truth is one more sample like the others, the k-th of n samples has k / (n + 1) of the probability before
        it. Replayed traces show that truths come earlier than samples of a history say, so such a range begins earlier.
        """
        if not self.starts:
            return None, None
        outside = (self.samples + 1) // 10
        low = self.starts[min(max(outside, 1), len(self.starts)) - 1]
        last = self.samples - max(outside, 1)
        high = self.starts[last] if last < len(self.starts) else None
        return (low if low == high else low / self.earlier), high


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
    """Return when a job starts: a new one, or one that waits in the cluster (by ``namespace/name``).

    Without ``samples``, the answer is only whether it starts now.
    """
    prospect = Prospect(cluster, seed=seed)
    starts = []
    reason = ""
    # If no running time is drawn, all futures are the same.
    runs = samples if assumption != Assumption() else min(samples, 1)
    for number in range(max(runs, 1)):
        future = prospect.future(assumption, random.Random(f"{seed}/{number}"))
        timeline = future.timeline
        timeline.run([*future.waiting, *([job] if job is not None else ())], until=0.0)
        run = timeline.job(key)
        if run is not None and run.started is not None:
            # What starts now does not depend on the rest of the future.
            node = next((each.node for each in run.running.values()), "")
            return Forecast(node, (0.0,) * samples, samples, "", _devices_of(run, timeline))
        if number == 0 and run is not None:
            reason = run.reason
        if not samples:
            break
        timeline.watch([key])
        timeline.run(future.expected, until=horizon)
        if run is not None and run.started is not None:
            starts += [run.started] * (samples // runs)
    return Forecast("", tuple(sorted(starts)), samples, reason, earlier=_earlier(assumption))


def forecast_all(
    cluster: ClusterNow,
    *,
    assumption: Assumption,
    samples: int,
    horizon: float,
    seed: int = 0,
    watched: Collection[str] | None = None,
) -> dict[str, Forecast]:
    """Return when each job starts that waits in the cluster, by ``namespace/name``.

    With some keys to watch, only these jobs are in the answer. A future ends when they have started, so it is cheaper
    to leave out pods that never do.
    """
    prospect = Prospect(cluster, seed=seed)
    starts: dict[str, list[float]] = {}
    now: dict[str, tuple[str, tuple[str, ...]]] = {}
    reasons: dict[str, str] = {}
    for number in range(samples):
        future = prospect.future(assumption, random.Random(f"{seed}/{number}"))
        timeline = future.timeline
        keys = [f"{each.shape.namespace}/{each.name}" for each in future.waiting]
        if watched is not None:
            keys = [key for key in keys if key in watched]
        timeline.run(future.waiting, until=0.0)
        runs = {key: run for key in keys if (run := timeline.job(key)) is not None}
        for key, run in runs.items():
            reasons.setdefault(key, run.reason)
            if run.started is not None and key not in now:
                now[key] = next((each.node for each in run.running.values()), ""), _devices_of(run, timeline)
        timeline.watch(keys)
        timeline.run(future.expected, until=horizon)
        for key in keys:
            started = runs[key].started if key in runs else None
            starts.setdefault(key, []).extend([] if started is None else [started])
    return {
        key: Forecast(
            now[key][0] if key in now else "",
            tuple(sorted(times)),
            samples,
            "" if key in now else reasons.get(key, ""),
            now[key][1] if key in now else (),
            _earlier(assumption),
        )
        for key, times in starts.items()
    }


def _earlier(assumption: Assumption) -> float:
    """Return the factor for ranges: it was measured with running times of a history."""
    return _EARLIER if assumption.history else 1.0


def _devices_of(run: JobRun, timeline: Timeline) -> tuple[str, ...]:
    """Return the devices that the pods of a job have."""
    claims = timeline.cluster.snapshot.claims
    names = [(each.pod.metadata.namespace, name) for each in run.running.values() for name in all_names(each.pod)]
    allocations = [claim.status.allocation for where in names if (claim := claims.get(*where)) is not None]
    return tuple(
        f"{result.driver}/{result.pool}/{result.device}"
        for allocation in allocations
        if allocation is not None
        for result in allocation.devices.results
    )


def _stated_duration(each: pod.Pod | workload.Workload) -> float | None:
    """Return the running time that the user has stated in seconds, or None."""
    stated = each.metadata.annotations.get(DURATION)
    return None if stated is None else durations.parse(stated, title=f"annotation {DURATION}")


def _is_pending(each: pod.Pod) -> bool:
    return not each.spec.node_name and not podstate.has_ended(each) and each.metadata.deletion_timestamp is None


def _is_queued(each: workload.Workload) -> bool:
    return not workloadstate.has_reservation(each) and not workloadstate.is_finished(each)


def _workload_of(each: pod.Pod) -> str:
    name = each.metadata.annotations.get(WORKLOAD_ANNOTATION, "")
    return f"{each.metadata.namespace}/{name}" if name else ""


def _age(each: pod.Pod | workload.Workload) -> tuple[str, str]:
    return str(each.metadata.creation_timestamp or ""), str(each.metadata.name)


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
