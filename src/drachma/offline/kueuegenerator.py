"""Kueue's performance generator as a workload: cohorts, queues and workloads, each set repeated.

The form is that of Kueue's ``test/performance/scheduler`` configurations. Every queue has quota for cpu, and every
workload is one pod that requests cpu.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Final

import msgspec

from drachma import errors
from drachma.api import meta, pod
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, resourceflavor
from drachma.simulate.timeline.events import Arrival, JobShape
from drachma.values import quantity

_Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
_FLAVOR: Final = "rf"


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    pass


class GeneratedWorkload(_Part, frozen=True, kw_only=True):
    """Workload of a set."""

    class_name: str
    runtime_ms: _Count
    priority: Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)] = 0
    request: _Count


class WorkloadsSet(_Part, frozen=True, kw_only=True):
    """Workloads that are created at equal distances."""

    count: _Count
    creation_interval_ms: _Count
    workloads: tuple[GeneratedWorkload, ...]


class QueuesSet(_Part, frozen=True, kw_only=True):
    """Queues that are alike."""

    class_name: str
    count: _Count
    nominal_quota: _Count
    borrowing_limit: _Count | None = None
    reclaim_within_cohort: str = "Never"
    within_cluster_queue: str = "Never"
    workloads_sets: tuple[WorkloadsSet, ...]


class CohortSet(_Part, frozen=True, kw_only=True):
    """Cohorts that are alike."""

    class_name: str
    count: _Count
    queues_sets: tuple[QueuesSet, ...]


class GeneratorConfig(_Part, frozen=True, kw_only=True):
    """The whole configuration."""

    cohorts: tuple[CohortSet, ...]


def is_generator(document: Mapping[str, Any]) -> bool:
    """Return True if a document has this form."""
    return isinstance(document.get("cohorts"), list) and "kind" not in document


class KueueGenerator:
    """Queues and workloads of a configuration."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Raises DecodeError with the path of the first field that is wrong."""
        try:
            self._config: Final = msgspec.convert(document, GeneratorConfig)
        except msgspec.ValidationError as error:
            raise errors.DecodeError(f"generator configuration: {error}") from None

    def _queues(self) -> Iterator[tuple[str, str, QueuesSet]]:
        """Yield cohort and name of every queue, with its set."""
        for cohort_set in self._config.cohorts:
            for cohort in range(cohort_set.count):
                for queues in cohort_set.queues_sets:
                    for number in range(queues.count):
                        cohort_name = f"{cohort_set.class_name}-{cohort}"
                        yield cohort_name, f"{cohort_name}-{queues.class_name}-{number}", queues

    def objects(self) -> list[meta.Object]:
        """Return the queues, with one flavor for all."""
        objects: list[meta.Object] = [decoding.decode({"metadata": {"name": _FLAVOR}}, resourceflavor.ResourceFlavor)]
        for cohort, name, queues in self._queues():
            quota: dict[str, Any] = {"name": "cpu", "nominalQuota": str(queues.nominal_quota)}
            if queues.borrowing_limit is not None:
                quota["borrowingLimit"] = str(queues.borrowing_limit)
            spec = {
                "cohortName": cohort,
                "namespaceSelector": {},
                "queueingStrategy": "BestEffortFIFO",
                "preemption": {
                    "reclaimWithinCohort": queues.reclaim_within_cohort,
                    "withinClusterQueue": queues.within_cluster_queue,
                },
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": _FLAVOR, "resources": [quota]}]}],
            }
            objects.append(decoding.decode({"metadata": {"name": name}, "spec": spec}, clusterqueue.ClusterQueue))
            local = {"metadata": {"name": name, "namespace": "default"}, "spec": {"clusterQueue": name}}
            objects.append(decoding.decode(local, localqueue.LocalQueue))
        return objects

    def arrivals(self) -> Iterator[Arrival]:
        """Return the workloads in the order of their creation."""
        streams: list[Iterable[Arrival]] = []
        for _, name, queues in self._queues():
            for number, workloads in enumerate(queues.workloads_sets):
                streams.append(_set_arrivals(name, number, workloads))
        return heapq.merge(*streams, key=lambda arrival: arrival.time)


def _set_arrivals(queue: str, set_number: int, workloads: WorkloadsSet) -> Iterator[Arrival]:
    shapes = [_shape(queue, each) for each in workloads.workloads]
    numbers = itertools.count()
    for turn in range(workloads.count):
        time = (turn + 1) * workloads.creation_interval_ms / 1000
        for each, shape in zip(workloads.workloads, shapes, strict=True):
            name = f"{queue}-{each.class_name}-{set_number}-{next(numbers)}"
            yield Arrival(time, name, shape, each.runtime_ms / 1000)


def _shape(queue: str, generated: GeneratedWorkload) -> JobShape:
    requests = {"cpu": quantity.Quantity.parse(str(generated.request))}
    container = pod.Container(name="main", resources=pod.ResourceRequirements(requests=requests))
    return JobShape(spec=pod.PodSpec(containers=(container,), priority=generated.priority), queue=queue)
