"""Traces that SimKube exports (version 2, MessagePack) for simulations over time.

A trace has the objects that were applied and deleted at each moment, and the starts and ends of pods by their owner.
Every replica of a Deployment, StatefulSet or ReplicaSet is a job from the moment at which the object asks for it to the
moment at which it no longer does. Pods, Jobs and CronJobs run as long as the pods of the trace did. Objects without
pods are left out.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.api import meta
from drachma.offline import podtemplates
from drachma.simulate.timeline.events import Arrival, JobShape

SUFFIX: Final = ".sktrace"
_VERSION: Final = 2
_MOST_BYTES: Final = 1024 * 1024 * 1024
_MOST_PODS: Final = 1_000_000
_REPLICATED: Final = frozenset({"apps/v1.Deployment", "apps/v1.StatefulSet", "apps/v1.ReplicaSet"})
_JOB: Final = "batch/v1.Job"
_CRON_JOB: Final = "batch/v1.CronJob"
_POD: Final = "v1.Pod"
_DAEMON_SET: Final = "apps/v1.DaemonSet"


class _TraceEvent(msgspec.Struct, frozen=True):
    ts: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    applied_objs: list[dict[str, Any]] = []
    deleted_objs: list[dict[str, Any]] = []


class _Trace(msgspec.Struct, frozen=True):
    version: int
    events: list[_TraceEvent]
    pod_lifecycles: dict[tuple[str, str], dict[int, list[Any]]] = {}


class _Span(NamedTuple):
    """Time of one pod in the trace."""

    begin: float
    end: float | None


class _Replica(NamedTuple):
    """Replica that an object asks for."""

    name: str
    begin: float
    shape: JobShape


class SimkubeTrace:
    """Jobs of one trace."""

    def __init__(self, path: pathlib.Path) -> None:
        """Read the trace. Raises InvalidValueError with the file, the event and the object of a problem."""
        self._path: Final = path
        trace = _read(path)
        self._first: Final = trace.events[0].ts if trace.events else 0
        self._spans: Final = {
            owner: self._read_spans(owner, lifecycles) for owner, lifecycles in trace.pod_lifecycles.items()
        }
        self._shapes: Final[dict[str, JobShape]] = {}
        self._replicas: Final[dict[tuple[str, str], list[_Replica]]] = {}
        self._names: Final[dict[str, int]] = {}
        self._arrivals: Final[list[Arrival]] = []
        latest = self._first
        for number, event in enumerate(trace.events):
            place = f"{path}, events[{number}]"
            if event.ts < latest:
                raise errors.InvalidValueError(
                    f"{place}: ts {event.ts}: is before {latest}, the time of the event above"
                )
            latest = event.ts
            for document in event.applied_objs:
                self._apply(document, float(event.ts - self._first), place)
            for document in event.deleted_objs:
                self._shrink(_identity(document, place), 0, float(event.ts - self._first))
        for replicas in self._replicas.values():
            self._arrivals.extend(Arrival(each.begin, each.name, each.shape, None) for each in replicas)
        self._arrivals.sort(key=lambda arrival: arrival.time)

    def objects(self) -> list[meta.Object]:
        """Return no objects: a trace has only those with pods."""
        return []

    def arrivals(self) -> Iterator[Arrival]:
        """Return the jobs in the order of their times."""
        return iter(self._arrivals)

    def _apply(self, document: Mapping[str, Any], now: float, place: str) -> None:
        kind, key = _identity(document, place)
        title = f"{place}: {kind} {key}"
        spec = document.get("spec")
        spec = spec if isinstance(spec, Mapping) else {}
        if kind == _DAEMON_SET:
            raise errors.InvalidValueError(f"{title}: DaemonSets cannot be simulated: export the trace without them")
        if kind == _POD:
            self._run_once(kind, key, self._shape(document, key, title), now)
        elif kind == _JOB:
            count = _count(spec.get("parallelism"), "spec.parallelism", title)
            self._run_once(kind, key, self._shape(spec.get("template"), key, title, count=count), now)
        elif kind == _CRON_JOB:
            template = _path(spec, "jobTemplate", "spec", "template")
            shape = self._shape(template, key, title)
            for span in self._spans.get((kind, key), ()):
                duration = None if span.end is None else span.end - span.begin
                self._arrivals.append(Arrival(max(span.begin, 0.0), self._new_name(key), shape, duration))
        elif kind in _REPLICATED:
            count = _count(spec.get("replicas"), "spec.replicas", title)
            self._scale((kind, key), self._shape(spec.get("template"), key, title), count, now)

    def _run_once(self, kind: str, key: str, shape: JobShape, now: float) -> None:
        """Add a job that runs as long as its pods in the trace, the first time that it is applied."""
        if (kind, key) in self._replicas:
            return
        spans = self._spans.get((kind, key), ())
        lengths = [span.end - span.begin for span in spans if span.end is not None]
        if lengths:
            self._replicas[kind, key] = []
            self._arrivals.append(Arrival(now, self._new_name(key), shape, max(lengths)))
        else:
            self._replicas[kind, key] = [_Replica(self._new_name(key), now, shape)]

    def _scale(self, owner: tuple[str, str], shape: JobShape, count: int, now: float) -> None:
        """Start and end replicas. A changed template replaces all of them."""
        replicas = self._replicas.setdefault(owner, [])
        if replicas and replicas[0].shape is not shape:
            self._shrink(owner, 0, now)
        self._shrink(owner, count, now)
        replicas = self._replicas.setdefault(owner, [])
        replicas += [_Replica(self._new_name(owner[1]), now, shape) for _ in range(count - len(replicas))]

    def _shrink(self, owner: tuple[str, str], count: int, now: float) -> None:
        """End all replicas beyond a number."""
        replicas = self._replicas.get(owner, [])
        self._arrivals.extend(Arrival(each.begin, each.name, each.shape, now - each.begin) for each in replicas[count:])
        del replicas[count:]

    def _new_name(self, key: str) -> str:
        number = self._names[key] = self._names.get(key, -1) + 1
        return f"{key.partition('/')[2]}-{number}"

    def _shape(self, template: Any, key: str, title: str, count: int = 1) -> JobShape:
        if not isinstance(template, Mapping):
            raise errors.InvalidValueError(f"{title}: template: required")
        spec = template.get("spec")
        spec = (
            {field: value for field, value in spec.items() if field != "nodeName"} if isinstance(spec, Mapping) else {}
        )
        namespace = key.partition("/")[0]
        known = msgspec.json.encode([spec, namespace, count], order="deterministic").decode()
        shape = self._shapes.get(known)
        if shape is None:
            metadata = template.get("metadata")
            labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
            labels = labels if isinstance(labels, Mapping) else {}
            try:
                pod_spec = podtemplates.read_spec({"spec": spec})
            except errors.DecodeError as error:
                raise errors.InvalidValueError(f"{title}: {error}") from None
            shape = self._shapes[known] = JobShape(
                spec=msgspec.structs.replace(pod_spec, priority=pod_spec.priority or 0),
                count=count,
                labels={str(name): str(value) for name, value in labels.items()},
                namespace=namespace,
            )
        return shape

    def _read_spans(self, owner: tuple[str, str], lifecycles: Mapping[int, list[Any]]) -> list[_Span]:
        spans = []
        for each in (entry for entries in lifecycles.values() for entry in entries):
            match each:
                case "Empty":
                    continue
                case {"Running": int(begin)}:
                    spans.append(_Span(begin - self._first, None))
                case {"Finished": [int(begin), int(end)]} if begin <= end:
                    spans.append(_Span(begin - self._first, end - self._first))
                case _:
                    raise errors.InvalidValueError(
                        f"{self._path}, pod_lifecycles of {' '.join(owner)}: {each!r}: expected Empty, Running with a "
                        "time, or Finished with two times in order"
                    )
        return sorted(spans, key=lambda span: span.begin)


def _read(path: pathlib.Path) -> _Trace:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise errors.InvalidValueError(f"{path}: is larger than {_MOST_BYTES // 1024**2} MiB")
        content = path.read_bytes()
    except OSError as error:
        raise errors.InvalidValueError(f"{path}: {error.strerror}") from None
    try:
        trace = msgspec.msgpack.decode(content, type=_Trace)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise errors.InvalidValueError(f"{path}: is not a trace of SimKube: {error}") from None
    if trace.version != _VERSION:
        raise errors.InvalidValueError(f"{path}: version {trace.version}: expected {_VERSION}")
    return trace


def _identity(document: Mapping[str, Any], place: str) -> tuple[str, str]:
    """Return the kind as SimKube writes it, such as ``apps/v1.Deployment``, and namespace and name."""
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    api_version, kind = document.get("apiVersion"), document.get("kind")
    if not (isinstance(name, str) and name and isinstance(api_version, str) and isinstance(kind, str)):
        raise errors.InvalidValueError(f"{place}: expected objects with apiVersion, kind and metadata.name")
    namespace = metadata.get("namespace") if isinstance(metadata, Mapping) else None
    return f"{api_version}.{kind}", f"{namespace if isinstance(namespace, str) and namespace else 'default'}/{name}"


def _count(value: Any, field: str, title: str) -> int:
    if value is None:
        return 1
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_PODS:
        raise errors.InvalidValueError(f"{title}: {field} {value!r}: must be a whole number from 0 to {_MOST_PODS}")
    return value


def _path(part: Any, *fields: str) -> Any:
    for field in fields:
        part = part.get(field) if isinstance(part, Mapping) else None
    return part
