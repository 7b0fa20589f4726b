"""Workloads over time from files: SimulatedWorkloads, Jobs with durations, Kueue's generator, traces and recordings.

A Job counts if it has the annotation ``drachma.dev/duration``; ``drachma.dev/arrival`` is its time of arrival. Objects
of other kinds belong to the cluster and are read by :mod:`drachma.offline.clusterfiles`.
"""

from __future__ import annotations

import heapq
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import structs

from drachma import errors
from drachma.api import codec, defaults, meta, node, pod, shape
from drachma.offline import (
    dlrmtraces,
    kueuegenerator,
    manifestfiles,
    openbtraces,
    podtemplates,
    recordedworkloads,
    simkubetraces,
)
from drachma.queueing.jobs.settings import QUEUE_LABEL
from drachma.simulate import csvrows
from drachma.simulate.timeline import checkpoint, durations, generation, workloadspec
from drachma.simulate.timeline.events import Arrival, Event, JobShape

DURATION: Final = "drachma.dev/duration"
ARRIVAL: Final = "drachma.dev/arrival"
_MOST_PODS: Final = 1_000_000


class WorkloadFiles:
    """Workloads of some files, together."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Read the files. Raises InvalidValueError or DecodeError, with the place in the file."""
        self._traces: Final[list[openbtraces.OpenbTasks | dlrmtraces.DlrmInstances]] = []
        self._histories: Final[list[simkubetraces.SimkubeTrace | recordedworkloads.RecordedWorkload]] = []
        self._generators: Final[list[kueuegenerator.KueueGenerator]] = []
        self._specs: Final[list[tuple[str, workloadspec.WorkloadSpec]]] = []
        self.documents: Final[list[str]] = []
        """Files that may have objects of the cluster as well."""
        sources: list[manifestfiles.Source] = []
        for path in paths:
            if path.endswith(".csv"):
                self._traces.append(_trace(pathlib.Path(path)))
                continue
            if path.endswith(simkubetraces.SUFFIX):
                self._histories.append(simkubetraces.SimkubeTrace(pathlib.Path(path)))
                continue
            if recordedworkloads.is_recording(pathlib.Path(path)):
                self._histories.append(recordedworkloads.RecordedWorkload(pathlib.Path(path)))
                continue
            documents = manifestfiles.read_all([path])
            sources += documents
            for source in documents:
                self._take(source)
            if not self._generators:
                self.documents.append(path)
        self._jobs: Final = [each for each in JobReader(sources).jobs() if each.duration is not None]
        if not (self._traces or self._histories or self._generators or self._specs or self._jobs):
            raise errors.InvalidValueError(
                f"{', '.join(paths)}: no workload: expected a SimulatedWorkload, Jobs with the annotation {DURATION}, "
                f"a generator configuration of Kueue, a trace as CSV, a trace of SimKube (*{simkubetraces.SUFFIX}), or "
                "a recording of decisions (--record)"
            )

    def _take(self, source: manifestfiles.Source) -> None:
        document = source.content
        if not isinstance(document, Mapping):
            raise errors.InvalidValueError(f"{source.place}: expected an object, found {shape.describe(document)}")
        try:
            if workloadspec.is_workload(document):
                self._specs.append((source.place, workloadspec.decode(document)))
            elif kueuegenerator.is_generator(document):
                self._generators.append(kueuegenerator.KueueGenerator(document))
        except errors.DrachmaError as error:
            raise errors.InvalidValueError(f"{source.place}: {error}") from None

    def objects(self) -> list[meta.Object]:
        """Return objects of the cluster that workloads bring along, such as claim templates of traces."""
        return [each for trace in (*self._traces, *self._histories) for each in trace.objects()]

    @property
    def has_nodes(self) -> bool:
        """True if the workloads bring nodes along, as recordings do."""
        return any(isinstance(each, node.Node) for each in self.objects()) if self._histories else False

    def queueing_objects(self) -> list[meta.Object]:
        """Return the queues of generator configurations."""
        return [each for generator in self._generators for each in generator.objects()]

    def events(self, *, seed: int, nodes: Sequence[str], devices: Sequence[generation.Device] = ()) -> Iterator[Event]:
        """Return all events in the order of their times. ``nodes`` and ``devices`` may fail."""
        streams: list[Iterable[Event]] = [trace.arrivals() for trace in self._traces]
        streams += [history.arrivals() for history in self._histories]
        streams += [generator.arrivals() for generator in self._generators]
        for place, spec in self._specs:
            try:
                streams.append(
                    generation.events(
                        spec,
                        seed=seed,
                        nodes=nodes,
                        devices=devices,
                        decode=_decode,
                        read_spec=podtemplates.read_spec,
                    )
                )
            except errors.DrachmaError as error:
                raise errors.InvalidValueError(f"{place}: {error}") from None
        streams.append(sorted(self._jobs, key=lambda arrival: arrival.time))
        return heapq.merge(*streams, key=lambda event: event.time)


class JobReader:
    """Jobs among documents, with the priority classes next to them."""

    def __init__(self, sources: Iterable[manifestfiles.Source]) -> None:
        self._sources: Final = [each for each in sources if each.content.get("kind") in ("Job", "PriorityClass")]
        self._priorities: Final = {
            str(_mapping(each.content, "metadata").get("name")): each.content["value"]
            for each in self._sources
            if each.content["kind"] == "PriorityClass" and isinstance(each.content.get("value"), int)
        }

    def jobs(self) -> list[Arrival]:
        """Return the jobs. Raises InvalidValueError with the place in the file."""
        arrivals = []
        for source in self._sources:
            if source.content["kind"] == "Job":
                try:
                    arrivals.append(self._job(source.content))
                except errors.DrachmaError as error:
                    raise errors.InvalidValueError(f"{source.place}: {error}") from None
        return arrivals

    def _job(self, document: Mapping[str, Any]) -> Arrival:
        annotations = _annotations(document)
        spec = _mapping(document, "spec")
        template = _mapping(spec, "template")
        parallelism = _count(spec, "parallelism", 1)
        completions = _count(spec, "completions", parallelism)
        count = max(min(parallelism, completions), 1)
        title = codec.title(document)
        duration = None
        if DURATION in annotations:
            # Completions beyond the parallelism run one after the other.
            rounds = -(-completions // count) if completions else 1
            duration = rounds * durations.parse(annotations[DURATION], title=f"{title}: annotation {DURATION}")
        arrival = durations.parse(annotations.get(ARRIVAL, 0.0), title=f"{title}: annotation {ARRIVAL}")
        labels = _mapping(_mapping(document, "metadata"), "labels")
        job_shape = JobShape(
            spec=self._resolve_priority(podtemplates.read_spec(template), title),
            count=count,
            labels={str(key): str(value) for key, value in _mapping(_mapping(template, "metadata"), "labels").items()},
            namespace=str(_mapping(document, "metadata").get("namespace") or "default"),
            queue=str(labels.get(QUEUE_LABEL, "")),
        )
        return Arrival(arrival, str(_mapping(document, "metadata").get("name")), job_shape, duration)

    def _resolve_priority(self, spec: pod.PodSpec, title: str) -> pod.PodSpec:
        if spec.priority is not None:
            return spec
        name = spec.priority_class_name
        if name and name not in self._priorities:
            raise errors.InvalidValueError(f"{title}: spec.template.spec.priorityClassName {name!r}: no such class")
        return structs.replace(spec, priority=self._priorities.get(name, 0) if name else 0)


def read_jobs(path: str) -> list[Arrival]:
    """Return the Jobs of a file, with or without a duration. Raises InvalidValueError or DecodeError."""
    return JobReader(manifestfiles.read_all([path])).jobs()


def _trace(path: pathlib.Path) -> openbtraces.OpenbTasks | dlrmtraces.DlrmInstances:
    columns = csvrows.header(path)
    if columns.issuperset(dlrmtraces.COLUMNS):
        return dlrmtraces.DlrmInstances(path)
    if columns.issuperset(openbtraces.TASK_COLUMNS):
        return openbtraces.OpenbTasks(path)
    missing_columns = [each for each in openbtraces.TASK_COLUMNS if each not in columns]
    raise errors.InvalidValueError(
        f"{path}: neither a trace of openb (no column {', '.join(missing_columns)}) nor the DLRM trace"
    )


def _annotations(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(_mapping(document, "metadata"), "annotations")


def _mapping(part: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = part.get(field)
    return value if isinstance(value, Mapping) else {}


def _count(spec: Mapping[str, Any], field: str, default: int) -> int:
    value = spec.get(field)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_PODS:
        raise errors.InvalidValueError(f"spec.{field} {value!r}: must be a whole number from 0 to {_MOST_PODS}")
    return value


def _decode(document: Mapping[str, Any]) -> meta.Object:
    """Return an object that an event applies or removes, with the defaults of a server."""
    decoded = checkpoint.decode_object(document)
    return (
        decoded if str(document["apiVersion"]).startswith("kueue.") else defaults.apply(decoded, now=datetime.now(UTC))
    )
