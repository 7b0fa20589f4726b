"""Measures of a simulation: utilisation over time, waiting times, evictions. Memory does not grow with events, except
eight bytes for each waiting time.
"""

from __future__ import annotations

import array
import collections
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from drachma.simulate.timeline.jobrun import JobRun

DEVICES: Final = "devices"
"""Name under which allocated devices of claims are counted."""

_MOST_SAMPLES: Final = 2_000
_SAMPLES_PER_FRAGMENTATION: Final = 16
"""Fragmentation is measured with every sixteenth sample."""
_MOST_LONGEST: Final = 24
"""Number of jobs that waited longest whose times are kept."""
_MOST_EVICTIONS: Final = 10_000
"""Evictions that are kept one by one; all are counted."""


class Sample(NamedTuple):
    """State of the cluster at one time."""

    time: float
    used: dict[str, float]
    """Used share of each resource."""
    running: int
    waiting: int
    fragmentation: float | None = None
    """Share of the free capacity that a typical job could not use; None if it was not measured then."""


class EvictionRecord(NamedTuple):
    """Job that lost pods to another job, or to an outage."""

    time: float
    victim: str
    preemptor: str
    """Key of the job that got the room; empty for outages."""
    reason: str
    lost_seconds: float
    """Running time of the pods that is lost."""
    setting: str = ""
    """Field of a queue that allows the eviction."""
    pod: int = -1
    """Number of the evicted pod; -1 for all pods of the job."""
    lost_device_seconds: float = 0.0
    """Running time that is lost, for each of the devices that claims of the pods held."""


class JobTimes(NamedTuple):
    """Times of a job, in the order of its waiting time first."""

    wait: float
    job: str
    arrived: float
    started: float | None
    ended: float | None
    """None for a job that waits or runs."""
    evictions: int


class Series:
    """Samples at growing distances: whenever there are too many, every second one is dropped."""

    def __init__(self) -> None:
        self.samples: Final[list[Sample]] = []
        self.distance = 0.0
        """Least distance of samples in seconds."""

    def is_due(self, time: float) -> bool:
        """Return True if a sample at this time would be kept."""
        return not self.samples or time - self.samples[-1].time >= self.distance

    def append(self, sample: Sample) -> None:
        """Add a sample."""
        if self.samples and self.samples[-1].time == sample.time:
            self.samples[-1] = sample
            return
        self.samples.append(sample)
        if len(self.samples) >= _MOST_SAMPLES:
            del self.samples[1::2]
            span = self.samples[-1].time - self.samples[0].time
            self.distance = span / len(self.samples)


class SavedMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """Measures of a checkpoint, as plain data."""

    counts: dict[str, float]
    waits: list[tuple[str, int, bytes]]
    longest: list[JobTimes]
    evictions: list[EvictionRecord]
    pairs: list[tuple[str, str, int, float, float]]
    """Preemptor, victim, evictions, lost seconds of pods and of their devices."""
    pod_evictions: list[tuple[str, str, int, int]]
    samples: list[Sample]
    distance: float
    used: dict[str, int]
    integrals: dict[str, float]
    capacity_integrals: dict[str, float]
    node_seconds: dict[str, float]


_COUNTS: Final = ("arrived", "started", "completed", "evicted", "running_pods", "waiting_pods")
_TIMES: Final = ("lost_seconds", "lost_device_seconds", "now")


class Measures:
    """Everything that reports show about a simulation."""

    def __init__(self) -> None:
        self.arrived = 0
        self.started = 0
        self.completed = 0
        self.evicted = 0
        self.lost_seconds = 0.0
        self.lost_device_seconds = 0.0
        self.longest: Final[list[JobTimes]] = []
        """Ended jobs that waited longest, as a heap."""
        self.waits: Final[dict[tuple[str, int], array.array[float]]] = {}
        """Waiting times of started jobs by queue (or namespace) and priority."""
        self.evictions: Final[list[EvictionRecord]] = []
        self.eviction_pairs: Final[collections.Counter[tuple[str, str]]] = collections.Counter()
        """Number of evictions by preemptor and victim."""
        self.pair_losses: Final[dict[tuple[str, str], tuple[float, float]]] = {}
        """Lost running time of pods, and for each of their devices, by preemptor and victim."""
        self.repetitions: Final[dict[tuple[str, str], int]] = {}
        """Number of evictions of the same pod, by preemptor and victim. Several pods of a job may go at once."""
        self._pod_evictions: Final[collections.Counter[tuple[str, str, int]]] = collections.Counter()
        self.series: Final = Series()
        self.capacity: dict[str, int] = {}
        self.now = 0.0
        self.running_pods = 0
        self.waiting_pods = 0
        self.group_nodes: dict[str, int] = {}
        """Number of nodes of each node group now."""
        self.node_seconds: Final[dict[str, float]] = {}
        """Sum of the times of all nodes of each node group."""
        self._used: Final[dict[str, int]] = {}
        self._integrals: Final[dict[str, float]] = {}
        self._capacity_integrals: Final[dict[str, float]] = {}

    # Checkpoints

    def save(self) -> SavedMeasures:
        """Return all measures as plain data. Numbers of pods and capacity are measured again after a restart."""
        return SavedMeasures(
            counts={name: getattr(self, name) for name in (*_COUNTS, *_TIMES)},
            waits=[(queue, priority, waits.tobytes()) for (queue, priority), waits in self.waits.items()],
            longest=list(self.longest),
            evictions=list(self.evictions),
            pairs=[(*pair, count, *self.pair_losses[pair]) for pair, count in self.eviction_pairs.items()],
            pod_evictions=[(*key, count) for key, count in self._pod_evictions.items()],
            samples=list(self.series.samples),
            distance=self.series.distance,
            used=dict(self._used),
            integrals=dict(self._integrals),
            capacity_integrals=dict(self._capacity_integrals),
            node_seconds=dict(self.node_seconds),
        )

    def restore(self, saved: SavedMeasures) -> None:
        """Take over the measures of a checkpoint."""
        for name in _COUNTS:
            setattr(self, name, int(saved.counts[name]))
        for name in _TIMES:
            setattr(self, name, saved.counts[name])
        for queue, priority, content in saved.waits:
            self.waits[queue, priority] = array.array("d", content)
        self.longest[:] = saved.longest
        self.evictions[:] = saved.evictions
        for preemptor, victim, count, lost, lost_devices in saved.pairs:
            self.eviction_pairs[preemptor, victim] = count
            self.pair_losses[preemptor, victim] = lost, lost_devices
        for preemptor, victim, number, count in saved.pod_evictions:
            self._pod_evictions[preemptor, victim, number] = count
            self.repetitions[preemptor, victim] = max(self.repetitions.get((preemptor, victim), 0), count)
        self.series.samples[:] = saved.samples
        self.series.distance = saved.distance
        self._used.update(saved.used)
        self._integrals.update(saved.integrals)
        self._capacity_integrals.update(saved.capacity_integrals)
        self.node_seconds.update(saved.node_seconds)

    # Time

    def advance(self, now: float) -> None:
        """Move on to a time."""
        passed = now - self.now
        if passed > 0:
            for name, amount in self._used.items():
                self._integrals[name] = self._integrals.get(name, 0.0) + passed * amount
            for name, amount in self.capacity.items():
                self._capacity_integrals[name] = self._capacity_integrals.get(name, 0.0) + passed * amount
            for group, count in self.group_nodes.items():
                self.node_seconds[group] = self.node_seconds.get(group, 0.0) + passed * count
            self.now = now

    def sample(self, fragmentation: Callable[[], float | None]) -> None:
        """Note the state now, if a sample is due. Fragmentation costs more, and is measured less often."""
        if not self.series.is_due(self.now):
            return
        is_due = len(self.series.samples) % _SAMPLES_PER_FRAGMENTATION == 0
        self.series.append(
            Sample(self.now, self.shares(), self.running_pods, self.waiting_pods, fragmentation() if is_due else None)
        )

    def shares(self) -> dict[str, float]:
        """Return the used share of each resource now."""
        return {name: self._used.get(name, 0) / amount for name, amount in self.capacity.items() if amount}

    def mean_shares(self) -> dict[str, float]:
        """Return the used share of each resource, as the mean over time."""
        return {
            name: self._integrals.get(name, 0.0) / total for name, total in self._capacity_integrals.items() if total
        }

    # Jobs

    def count_arrival(self, job: JobRun) -> None:
        """Count a job that arrives."""
        self.arrived += 1
        self.waiting_pods += len(job.waiting)

    def count_start(self, job: JobRun) -> None:
        """Count a job all of whose pods have nodes for the first time."""
        self.started += 1
        group = (job.arrival.shape.queue or job.arrival.shape.namespace, job.arrival.shape.priority)
        self.waits.setdefault(group, array.array("d")).append(self.now - job.arrival.time)

    def count_end(self, job: JobRun) -> None:
        """Count a job all of whose pods have ended."""
        self.completed += 1
        times = times_of(job, self.now, has_ended=True)
        if len(self.longest) < _MOST_LONGEST:
            heapq.heappush(self.longest, times)
        elif times.wait > self.longest[0].wait:
            heapq.heapreplace(self.longest, times)

    def longest_waits(self, jobs: Iterable[JobRun]) -> list[JobTimes]:
        """Return the times of the jobs that waited longest, among ended ones and others, by arrival."""
        open_jobs = (times_of(job, self.now, has_ended=False) for job in jobs)
        return sorted(heapq.nlargest(_MOST_LONGEST, (*self.longest, *open_jobs)), key=lambda times: times.arrived)

    def count_pods(self, amounts: Mapping[str, int], count: int, *, devices: int = 0) -> None:
        """Count pods of one shape that get nodes, or with a negative number pods that leave them."""
        self.running_pods += count
        used = self._used
        for name, amount in amounts.items():
            used[name] = used.get(name, 0) + count * amount
        if devices:
            used[DEVICES] = used.get(DEVICES, 0) + count * devices

    def count_eviction(self, record: EvictionRecord) -> None:
        """Count pods that a job loses."""
        self.evicted += 1
        self.lost_seconds += record.lost_seconds
        self.lost_device_seconds += record.lost_device_seconds
        if record.preemptor:
            pair = record.preemptor, record.victim
            self.eviction_pairs[pair] += 1
            lost, lost_devices = self.pair_losses.get(pair, (0.0, 0.0))
            self.pair_losses[pair] = lost + record.lost_seconds, lost_devices + record.lost_device_seconds
            self._pod_evictions[*pair, record.pod] += 1
            self.repetitions[pair] = max(self.repetitions.get(pair, 0), self._pod_evictions[*pair, record.pod])
        if len(self.evictions) < _MOST_EVICTIONS:
            self.evictions.append(record)

    def wait_percentiles(self) -> Iterator[tuple[str, int, WaitingTimes]]:
        """Yield queue, priority and waiting times of started jobs."""
        for (queue, priority), waits in sorted(self.waits.items()):
            yield queue, priority, waiting_times(waits)


def times_of(job: JobRun, now: float, *, has_ended: bool) -> JobTimes:
    """Return the times of a job until now."""
    wait = (now if job.started is None else job.started) - job.arrival.time
    return JobTimes(wait, job.key, job.arrival.time, job.started, now if has_ended else None, job.evictions)


class WaitingTimes(NamedTuple):
    """Percentiles of waiting times in seconds."""

    jobs: int
    p50: float
    p95: float
    p99: float
    most: float
    mean: float


def waiting_times(waits: array.array[float]) -> WaitingTimes:
    """Return the percentiles of waiting times; the smallest value that at least so many percent do not exceed."""
    ordered = sorted(waits)
    last = len(ordered) - 1

    def percentile(percent: int) -> float:
        return ordered[min(last, (percent * len(ordered) + 99) // 100 - 1)]

    return WaitingTimes(
        len(ordered), percentile(50), percentile(95), percentile(99), ordered[-1], sum(ordered) / len(ordered)
    )
