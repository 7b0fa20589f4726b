"""Small clusters and jobs, and the history that a timeline makes of them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import structs

from drachma import testing
from drachma.api import meta
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, resourceflavor
from drachma.simulate import ClusterState, Simulation
from drachma.simulate.timeline.events import Arrival, Event, JobShape
from drachma.simulate.timeline.jobrun import JobRun
from drachma.simulate.timeline.quota import Quota
from drachma.simulate.timeline.timeline import Timeline

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def node(name: str, cpu: int = 4, **labels: str) -> meta.Object:
    return testing.node(name, allocatable={"cpu": str(cpu), "memory": "64Gi", "pods": "110"}, labels=labels).build()


def shape(cpu: int = 1, *, priority: int = 0, **about: Any) -> JobShape:
    spec = testing.pod("x").container("c", requests={"cpu": str(cpu)}).build().spec
    return JobShape(spec=structs.replace(spec, priority=priority), **about)


def job(time: float, name: str, kind: JobShape, duration: float | None = 10.0) -> Arrival:
    return Arrival(time, name, kind, duration)


def queues(*names: str, cpu: int = 4, cohort: str = "", **preemption: str) -> list[meta.Object]:
    objects: list[meta.Object] = [decoding.decode({"metadata": {"name": "any"}}, resourceflavor.ResourceFlavor)]
    for name in names:
        quota = {"name": "cpu", "nominalQuota": str(cpu)}
        spec = {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "any", "resources": [quota]}]}],
            **({"cohortName": cohort} if cohort else {}),
            **({"preemption": preemption} if preemption else {}),
        }
        objects.append(decoding.decode({"metadata": {"name": name}, "spec": spec}, clusterqueue.ClusterQueue))
        local = {"metadata": {"name": name, "namespace": "default"}, "spec": {"clusterQueue": name}}
        objects.append(decoding.decode(local, localqueue.LocalQueue))
    return objects


class History:
    """Everything that happens, one line each."""

    def __init__(self, objects: Iterable[meta.Object], *, queueing: Sequence[meta.Object] = ()) -> None:
        self.lines: list[str] = []
        quota = Quota(queueing, epoch=EPOCH) if queueing else None
        self.timeline = Timeline(Simulation(ClusterState.of(objects)), quota=quota, observer=self._note)

    def _note(self, what: str, time: float, job: JobRun, where: str) -> None:
        self.lines.append(f"{time:g} {what} {job.arrival.name}{f' on {where}' if where else ''}")

    def run(self, events: Iterable[Event], *, until: float | None = None) -> list[str]:
        self.timeline.run(events, until=until)
        return self.lines
