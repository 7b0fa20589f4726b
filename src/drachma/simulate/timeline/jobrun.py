"""Life of one job in a simulation: its waiting, running and ended pods."""

from __future__ import annotations

from typing import Final, NamedTuple

from drachma.api import meta, pod
from drachma.scheduler.snapshot import gangs
from drachma.simulate.timeline.events import Arrival, JobShape


class Resident(NamedTuple):
    """Pod that ran in the cluster before the simulation began. Each is a job of its own."""

    number: int
    """Position among all residents."""
    pod: pod.Pod
    elapsed: float
    """Seconds that it has run."""
    stated: float | None
    """Seconds that it still runs, if its user has stated a duration."""
    workload: str
    """Namespace and name of the workload that it belongs to; empty for none."""


class RunningPod:
    """Pod on a node."""

    __slots__ = ("devices", "index", "job", "node", "pod", "started")

    def __init__(self, job: JobRun, index: int, *, running_pod: pod.Pod, node: str, devices: int, now: float) -> None:
        self.job: Final = job
        self.index: Final = index
        self.pod: Final = running_pod
        self.node: Final = node
        self.devices: Final = devices
        """Number of devices that were allocated for it."""
        self.started: Final = now


class JobRun:
    """Job that has arrived."""

    __slots__ = ("arrival", "attempts", "evictions", "reason", "running", "shape", "started", "waiting", "workload")

    def __init__(self, arrival: Arrival) -> None:
        self.arrival: Final = arrival
        self.shape: JobShape = arrival.shape
        """Shape of its pods now: that of the arrival, with the node labels of assigned flavors."""
        self.waiting: list[int] = list(range(arrival.shape.count))
        self.running: Final[dict[int, RunningPod]] = {}
        self.started: float | None = None
        """First time at which all pods had nodes."""
        self.evictions = 0
        self.attempts = 0
        self.reason = ""
        """Reason why it waits."""
        self.workload = ""
        """Namespace and name of the workload of a resident."""

    @classmethod
    def of_resident(cls, resident: Resident, shape: JobShape, remaining_seconds: float | None, now: float) -> JobRun:
        """Return the job of a pod that runs already, for some seconds more or for ever."""
        bound = resident.pod
        job = cls(Arrival(now, str(bound.metadata.name), shape, remaining_seconds))
        job.waiting.clear()
        job.started = now
        job.workload = resident.workload
        job.running[0] = RunningPod(job, 0, running_pod=bound, node=bound.spec.node_name, devices=0, now=now)
        return job

    def __lt__(self, other: JobRun) -> bool:
        return self.arrival.name < other.arrival.name

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.shape.namespace}/{self.arrival.name}"

    @property
    def has_ended(self) -> bool:
        """True if no pod waits or runs."""
        return not self.waiting and not self.running

    def make_pod(self, index: int) -> pod.Pod:
        """Return one of the pods, as its controller would create it now."""
        # A pod that was evicted may still terminate when its replacement is created.
        name = f"{self.arrival.name}-{index}" + (f"-{self.attempts}" if self.attempts else "")
        labels, annotations = self.shape.labels, {}
        if self.shape.is_gang:
            labels = {**labels, gangs.LABEL: self.arrival.name}
            annotations = {gangs.SIZE: str(self.shape.count)}
        metadata = meta.ObjectMeta(
            name=name,
            namespace=self.shape.namespace,
            labels=labels,
            annotations=annotations,
            uid=f"{self.shape.namespace}/{name}",
        )
        return pod.Pod(metadata=metadata, spec=self.shape.spec)
